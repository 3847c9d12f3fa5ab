"""Children without exec: by `os.fork`, a child's child, by `multiprocessing`, and with another thread left behind."""
import multiprocessing
import os
import sys
import threading
import warnings

import spinning
import telling


def in_child(seconds):
    child = os.fork()
    if child == 0:
        in_grandchild(seconds)
    spinning.spend("child", seconds)
    os.waitpid(child, 0)
    os._exit(0)


def in_grandchild(seconds):
    spinning.spend("grandchild", seconds)
    os._exit(0)


def in_pool(seconds):
    spinning.spend("pooled", seconds)


def in_thread(seconds):
    """A child whose only thread is not the one that its parent began with."""
    child = os.fork()
    if child == 0:
        in_orphan(seconds)
    spinning.spend("thread", seconds)
    os.waitpid(child, 0)


def in_orphan(seconds):
    sorted([1], key=lambda _: spinning.spend("orphan", seconds))
    os._exit(0)


def main():
    warnings.simplefilter("ignore")
    seconds = float(sys.argv[1])
    telling.say_version()
    spinning.say_tails()
    telling.wait_for_go()
    child = os.fork()
    if child == 0:
        in_child(seconds)
    os.waitpid(child, 0)
    pool = multiprocessing.get_context("fork").Process(target=in_pool, args=(seconds,))
    pool.start()
    pool.join()
    thread = threading.Thread(target=in_thread, args=(seconds,))
    thread.start()
    thread.join()
    spinning.spend("parent", seconds)
    telling.end(cpu={})


main()
