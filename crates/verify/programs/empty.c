/* Nothing: the start and the end of a process, with the dynamic linker's part. */
int main(void) { return 0; }
