// Three leaves below goroutines, an interface call and a closure. Follows the protocol of kit.h.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
)

type worker interface{ work(n uint64) uint64 }
type sixty struct{}
type thirty struct{}
type ten struct{}

//go:noinline
func leaf60(n uint64) uint64 {
	x := n | 1
	for i := uint64(0); i < n; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		x += 60
	}
	return x
}

//go:noinline
func leaf30(n uint64) uint64 {
	x := n | 1
	for i := uint64(0); i < n; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		x += 30
	}
	return x
}

//go:noinline
func leaf10(n uint64) uint64 {
	x := n | 1
	for i := uint64(0); i < n; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		x += 10
	}
	return x
}

//go:noinline
func (sixty) work(n uint64) uint64 { return leaf60(6*n) + 1 }

//go:noinline
func (thirty) work(n uint64) uint64 { return leaf30(3*n) + 1 }

//go:noinline
func (ten) work(n uint64) uint64 { return leaf10(n) + 1 }

//go:noinline
func drive(parts []worker, n uint64) uint64 {
	sum := uint64(0)
	for _, part := range parts {
		sum ^= part.work(n)
	}
	return sum
}

func cpuSeconds() float64 {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return float64(used.Utime.Sec+used.Stime.Sec) + float64(used.Utime.Usec+used.Stime.Usec)*1e-6
}

func main() {
	budget := 1.0
	if len(os.Args) > 1 {
		budget, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	gated := os.Getenv("GATE") != "0"
	input := bufio.NewReader(os.Stdin)
	fmt.Printf("READY %d\n", os.Getpid())
	if gated {
		if _, err := input.ReadString('\n'); err != nil {
			os.Exit(3)
		}
	}
	parts := []worker{sixty{}, thirty{}, ten{}}
	begun := cpuSeconds()
	var all sync.WaitGroup
	var mutex sync.Mutex
	unit, sum := uint64(0), uint64(0)
	for g := uint32(0); g < 4; g++ {
		all.Add(1)
		go func(random uint32) {
			defer all.Done()
			mine, own := uint64(0), uint64(0)
			for cpuSeconds()-begun < budget {
				for i := 0; i < 20; i++ {
					random = random*1103515245 + 12345
					now := 2000 + uint64(random>>16)%4000
					own ^= drive(parts, now)
					mine += now
				}
			}
			mutex.Lock()
			unit += mine
			sum ^= own
			mutex.Unlock()
		}(g + 1)
	}
	all.Wait()
	cpu := cpuSeconds() - begun
	fmt.Printf("{\"cpu_s\":%.6f,\"truth\":{\"leaf60\":%d,\"leaf30\":%d,\"leaf10\":%d},\"sum\":%d}\n",
		cpu, 6*unit, 3*unit, unit, sum%2)
	for gated {
		if _, err := input.ReadString('\n'); err != nil {
			break
		}
	}
}
