"""The endpoints, one file each.

SPDX-License-Identifier: Apache-2.0
"""
