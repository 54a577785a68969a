"""python -m ftruntime: the version and the devices.

SPDX-License-Identifier: Apache-2.0
"""
from . import __version__, devices

print(f"ftruntime {__version__}")
for device in devices():
    print(f"{device.name:8} {'' if device.usable else 'not usable: '}{device.detail}")
