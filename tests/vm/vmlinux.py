"""Unpacks the kernel inside a bzImage: vmlinux.py BZIMAGE OUTPUT.

The emulated processor takes four seconds to do this at every boot. The layout is Documentation/arch/x86/boot.rst of the
kernel. Exit status 2: the kernel is packed with something else than xz, so boot the bzImage.
"""

import lzma
import struct
import sys

SETUP_SECTORS, PAYLOAD = 0x1F1, 0x248


def unpack(image):
    offset, length = struct.unpack_from("<II", image, PAYLOAD)
    start = ((image[SETUP_SECTORS] or 4) + 1) * 512 + offset
    # Four bytes with the unpacked size follow the xz stream; a decompressor object leaves them alone.
    return lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(image[start:start + length])


def main():
    with open(sys.argv[1], "rb") as packed:
        image = packed.read()
    try:
        kernel = unpack(image)
    except (lzma.LZMAError, struct.error) as error:
        print(f"{sys.argv[1]}: {error}", file=sys.stderr)
        sys.exit(2)
    with open(sys.argv[2], "wb") as output:
        output.write(kernel)


main()
