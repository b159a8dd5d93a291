%%pointers%%
/* Take the arrays from the content of the data file, mapped or read to an address that is a multiple
   of 8, where it must stay. Returns 0 unless it is the file that was written with this header, and
   on machines whose numbers are not little-endian. Not every byte is checked. */
static inline int name_open(const void *data, size_t size)
{
    static const unsigned char head[] = {%%head%%};
    const unsigned char *bytes = (const unsigned char *)data;
    const int64_t order = INT64_C(0x0102030405060708);
    if (data == NULL || (uint64_t)size != (uint64_t)NAME_DATA_BYTES || (uintptr_t)data % 8 != 0) return 0;
    if (memcmp(bytes, head, sizeof head) != 0 || memcmp(bytes + 8, &order, sizeof order) != 0) return 0;
%%sets%%    return 1;
}

static inline int name_ready(void) { return name_time != NULL; }
