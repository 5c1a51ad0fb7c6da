package main

import (
	"context"
	"io/ioutil"
	"math/rand"
	"os"
	"sync"
	"time"

	"github.com/golang/protobuf/proto"
	"github.com/golang/protobuf/protoc-gen-go/descriptor"
)

const (
	stormThreads = 4
	stormCalls   = 1000 // of each thread
)

// stormMethods are all but the one that ends the session.
func stormMethods() (methods []string) {
	bytes, err := ioutil.ReadFile(os.Args[2])
	check(err == nil, err)
	var files descriptor.FileDescriptorSet
	err = proto.Unmarshal(bytes, &files)
	check(err == nil, err)
	for _, file := range files.File {
		for _, service := range file.Service {
			for _, method := range service.Method {
				if method.GetName() != "CloseSession" {
					methods = append(methods, service.GetName()+"/"+method.GetName())
				}
			}
		}
	}
	return methods
}

// storm makes thousands of calls of random methods, most with an empty request and some with one that fills the socket.
// giveUp makes the context that ends each. The session and its memory must survive.
func storm(giveUp func(dice *rand.Rand) (context.Context, context.CancelFunc)) {
	c := connectWithSession()
	defer c.close()
	memoryID := c.call("MemoryService/AllocateMemory", number(1, 65536)).number(1)
	methods := stormMethods()
	var threads sync.WaitGroup
	for thread := 0; thread < stormThreads; thread++ {
		threads.Add(1)
		go func(dice *rand.Rand) {
			defer threads.Done()
			for call := 0; call < stormCalls; call++ {
				var request []byte
				if dice.Intn(64) == 0 {
					request = make([]byte, mib)
				}
				ctx, cancel := giveUp(dice)
				c.invoke(ctx, methods[dice.Intn(len(methods))], request)
				cancel()
			}
		}(rand.New(rand.NewSource(int64(thread))))
	}
	threads.Wait()
	c.call("SessionService/GetSession", nil)
	c.call("MemoryService/ReleaseMemory", number(1, memoryID))
}

func cancelStorm() {
	storm(func(dice *rand.Rand) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		time.AfterFunc(time.Duration(dice.Intn(2000))*time.Microsecond, cancel)
		return ctx, cancel
	})
}

func deadlineStorm() {
	storm(func(dice *rand.Rand) (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.Background(), time.Duration(100+dice.Intn(1900))*time.Microsecond)
	})
}
