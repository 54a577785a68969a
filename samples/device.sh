# device.sh - select the device of the quick start: a GPU if possible, else the CPU; sourced by it.
# SPDX-License-Identifier: Apache-2.0

# ft_choose_device: set $ft_device, $ft_why and the options for configure, $ft_configure.  A GPU
# requires nvcc and a card of compute capability 7.5 or higher that nvidia-smi lists.
ft_choose_device() {
    ft_device=cpu
    ft_configure=--with-cuda=no
    if ! PATH=$PATH:/usr/local/cuda/bin command -v nvcc >/dev/null; then
        ft_why="no nvcc in PATH or /usr/local/cuda/bin"
        return
    fi
    ft_cards=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
        grep -xE '[0-9]+\.[0-9]') || {
        ft_why="nvcc is installed, but nvidia-smi lists no NVIDIA GPU"
        return
    }
    # 90a adds instructions such as wgmma to 90.
    ft_archs=$(echo "$ft_cards" | tr -d . | sort -un | awk '$1 >= 75' | sed 's/^90$/90a/' | paste -sd,)
    if test -z "$ft_archs"; then
        ft_why="the card's compute capability $(echo "$ft_cards" | head -n 1) is below 7.5"
        return
    fi
    ft_device=cuda
    ft_configure="--with-cuda=auto --with-cuda-arch=$ft_archs"
    ft_why="$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)"
}

# ft_try_device COMMAND...: fall back to the CPU if the command fails on the device.
ft_try_device() {
    test "$ft_device" = cpu && return
    if ! ft_said=$("$@" --device "$ft_device" 2>&1 >/dev/null); then
        ft_why="$ft_device failed: $(echo "$ft_said" | head -n 1)"
        ft_device=cpu
    fi
}
