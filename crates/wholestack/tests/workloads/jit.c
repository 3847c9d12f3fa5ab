/* Code that a program writes itself, x86_64: no file, no unwind information, no frame pointer. Every now and then other
 * code, with another frame, comes to the same addresses. */
#include "kit.h"
#include <sys/mman.h>

LEAF(leaf60)
LEAF(leaf30)
LEAF(leaf10)

typedef uint64_t function(uint64_t n, void *leaf);

/* push %rbx; sub $16,%rsp; nop (4 bytes); call *%rsi; add $16,%rsp; pop %rbx; ret */
static const unsigned char small[] = {0x53, 0x48, 0x83, 0xec, 0x10, 0x0f, 0x1f, 0x40, 0x00, 0xff, 0xd6,
                                      0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3};
/* push %rbx; push %r12; sub $40,%rsp; nop (2 bytes); call *%rsi; add $40,%rsp; pop %r12; pop %rbx; ret */
static const unsigned char large[] = {0x53, 0x41, 0x54, 0x48, 0x83, 0xec, 0x28, 0x66, 0x90, 0xff, 0xd6,
                                      0x48, 0x83, 0xc4, 0x28, 0x41, 0x5c, 0x5b, 0xc3};
/* mov %rdi,%rax; dec %rax; jne -5; ret */
static const unsigned char leaf[] = {0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3};

NI uint64_t run(function *written, uint64_t n, void *next) { return written(n, next) + n; }

int main(int argc, char **argv) {
    static const char *const names[] = {"leaf60", "leaf30", "leaf10"};
    static void *const leaves[] = {leaf60, leaf30, leaf10};
    static const unsigned weights[] = {6, 3, 1};
    double done[3] = {0}, changed = 0;
    int protection = PROT_READ | PROT_WRITE | PROT_EXEC;
    kit_begin(argc, argv);
    unsigned char *code = mmap(0, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) return 1;
    memcpy(code + 256, leaf, sizeof leaf);
    for (int form = 0; kit_more();) {
        if (kit_cpu() - changed > 0.3) {
            changed = kit_cpu();
            form = !form;
            memcpy(code, form ? large : small, form ? sizeof large : sizeof small);
        }
        unsigned which = kit_random(3);
        uint64_t n = weights[which] * 2000ul;
        kit_sink += run((function *)code, n, leaves[which]);
        done[which] += n;
        /* a leaf that is in no file either */
        kit_sink += run((function *)code, 500, code + 256);
    }
    kit_end(3, names, done, 0);
    return 0;
}
