"""What the code of a GPU's kernel takes."""

import re

CARD = (9, 0)


def resources(code):
    """Registers and bytes of stack of a thread."""
    from cuda.bindings import nvjitlink

    options = ["-arch=sm_90", "-lto", "-fma=0", "-O3", "-Xptxas=-v", "-verbose"]
    handle = nvjitlink.create(len(options), options)
    nvjitlink.add_data(handle, nvjitlink.InputType.LTOIR, code, len(code), "kernel")
    nvjitlink.complete(handle)
    log = bytearray(nvjitlink.get_info_log_size(handle))
    nvjitlink.get_info_log(handle, log)
    nvjitlink.destroy(handle)
    return int(re.search(rb"Used (\d+) registers", log)[1]), int(re.search(rb"(\d+) bytes stack frame", log)[1])
