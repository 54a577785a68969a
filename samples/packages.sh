# packages.sh - install the build dependencies on Debian 12 or Ubuntu 24.04; sourced by the scripts.
# SPDX-License-Identifier: Apache-2.0

ft_packages="gcc make autoconf automake libtool pkg-config gawk libzip-dev libjansson-dev \
libssl-dev libutf8proc-dev libpcre2-dev libpng-dev libjpeg-dev"

# ft_install PACKAGE...: install missing packages; fails if that is impossible.
ft_install() {
    if ! command -v dpkg-query >/dev/null; then
        echo "This script installs packages with apt-get, which this system does not have." >&2
        echo "Install the equivalents of these Debian packages, then run configure and make: $*" >&2
        return 1
    fi
    ft_missing=
    for ft_package in "$@"; do
        ft_state=$(dpkg-query -W -f '${db:Status-Status}' "$ft_package" 2>/dev/null) || ft_state=
        test "$ft_state" = installed || ft_missing="$ft_missing $ft_package"
    done
    test -z "$ft_missing" && return 0
    ft_root=
    if test "$(id -u)" != 0; then
        if ! command -v sudo >/dev/null; then
            echo "Missing packages:$ft_missing" >&2
            echo "Neither root nor sudo: ask an administrator to install them." >&2
            return 1
        fi
        ft_root=sudo
    fi
    echo "Installing:$ft_missing"
    $ft_root apt-get update -qq &&
        $ft_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            $ft_missing >/dev/null
}
