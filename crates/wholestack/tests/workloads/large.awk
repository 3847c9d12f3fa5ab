# Writes a C program of some size.
BEGIN {
    srand(1)
    print "#include <stdio.h>"
    for (f = 0; f < functions; f++) {
        printf "static int f%d(int a, int b) { int r = %d; for (int i = 0; i < a; i++) { r = r * %d + (b >> (i & 7));\n", f, f, 2 + rand() * 97
        printf "if (r & %d) r ^= %d; switch (r & 7) {\n", 2 ^ (f % 9), rand() * 9999
        for (k = 0; k < 8; k++) printf "case %d: r += a * %d; b ^= r; break;\n", k, rand() * 99
        print "} } return r; }"
    }
    print "int main(int c, char **v) { int s = 0; (void)v;"
    for (f = 0; f < functions; f++) printf "s += f%d(c + %d, s);\n", f, f
    print "printf(\"%d\\n\", s); return 0; }"
}
