# change_h5.py FILE WHAT=VALUE...: changes an HDF5 file of cohort as a stranger would. WHAT is the path of an array,
# which VALUE (a number; `+-X`: alternating; `negative`; `none`: removed) fills, or the name of an attribute. A checkpoint
# gets a digest that fits its new content.
import ctypes
import sys

import h5py
import numpy


class Digest(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def digest_of(content):
    xxh = ctypes.CDLL("libxxhash.so.0").XXH3_128bits
    xxh.restype, xxh.argtypes = Digest, [ctypes.c_char_p, ctypes.c_size_t]
    digest = xxh(content, len(content))
    return b"%016x%016x" % (digest.high, digest.low)


def change_attribute(file, name, value):
    old = file.attrs[name]
    del file.attrs[name]
    if value != "none":
        file.attrs.create(name, numpy.bytes_(value) if isinstance(old, bytes) else type(old)(int(value)))


def change_array(file, name, value):
    array = file[name]
    if value == "none":
        del file[name]
    elif value == "negative":
        array[...] = -array[()]
    else:
        signs = numpy.resize([1, -1] if value.startswith("+-") else [1], array.shape)
        array[...] = (float(value.removeprefix("+-")) * signs).astype(array.dtype)


path = sys.argv[1]
with h5py.File(path, "r+") as file:
    for change in sys.argv[2:]:
        what, value = change.split("=")
        (change_array if what in file else change_attribute)(file, what, value)
with open(path, "rb") as file:
    front, content = file.read(512), file.read()
if front.startswith(b"cohort checkpoint"):
    text = b"cohort checkpoint\nxxh3-128 %s of the %d bytes that follow\n" % (digest_of(content), len(content))
    with open(path, "wb") as file:
        file.write(text.ljust(512, b"\n") + content)
