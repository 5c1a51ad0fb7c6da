// The cases of cases.txt with Go's gRPC, which has its own HTTP/2. Messages are read and written by field numbers, so
// that no code is generated.
//
// usage: go_client SOCKET DESCRIPTORS
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
)

const (
	timeout       = 30 * time.Second
	mib           = 1 << 20
	statusPending = 0x103
	openSession   = "SessionService/OpenSession"
	listAdapters  = "AdapterService/ListAdapters"
	closePd       = "MemoryService/ClosePd"
	// Numbers of ErrorReason.
	messageMalformed  = 30
	messageTooLarge   = 31
	messageCompressed = 33
	methodUnknown     = 36
	fieldOutOfRange   = 40
	// Go's gRPC sends a ping after ten idle seconds at the earliest.
	keepaliveTime = 10 * time.Second
	idleTime      = 11 * time.Second
)

// One connection to the daemon, dialled as older Go programs do: the :authority of its calls is the socket's path. Its
// methods panic when something is not as expected; runCase reports that.
type client struct {
	connection *grpc.ClientConn
	adapterID  uint64
}

func connect(options ...grpc.DialOption) *client {
	dialer := func(ctx context.Context, path string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	options = append(options, grpc.WithInsecure(), grpc.WithContextDialer(dialer), grpc.WithDisableRetry(),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{})))
	connection, err := grpc.Dial("passthrough:///"+os.Args[1], options...)
	check(err == nil, err)
	return &client{connection: connection}
}

// connectWithSession also opens a session and an adapter.
func connectWithSession(options ...grpc.DialOption) *client {
	c := connect(options...)
	c.call(openSession, text(1, "interop"))
	c.adapterID = c.call("AdapterService/OpenAdapter", nil).number(1)
	return c
}

func (c *client) close() { c.connection.Close() }

func (c *client) invoke(ctx context.Context, method string, request []byte,
	options ...grpc.CallOption) ([]byte, error) {
	var response []byte
	err := c.connection.Invoke(ctx, "/rnicd.v1."+method, request, &response, options...)
	return response, err
}

func (c *client) call(method string, request []byte) fields {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	response, err := c.invoke(ctx, method, request)
	check(err == nil, method, err)
	return parse(response)
}

// start makes the call in the background; its error comes through the channel.
func (c *client) start(ctx context.Context, method string, request []byte) chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := c.invoke(ctx, method, request)
		ended <- err
	}()
	return ended
}

func (c *client) expectRefused(method string, request []byte, code codes.Code, reason uint64, field string,
	options ...grpc.CallOption) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err := c.invoke(ctx, method, request, options...)
	detail := detailOf(err)
	check(codeOf(err) == code && detail.number(1) == reason && detail.text(4) == field, err, detail)
}

func (c *client) expectAlive() { check(len(c.call(listAdapters, nil)) == 1) }

// busyPd makes a protection domain that cannot be closed yet, and the region that is in the way.
func (c *client) busyPd() (pdID, mrID uint64) {
	pdID = c.call("MemoryService/CreatePd", number(1, c.adapterID)).number(1)
	return pdID, c.call("MemoryService/CreateMr", number(1, pdID)).number(1)
}

func (c *client) causeEvent(context uint64) {
	pdID, mrID := c.busyPd()
	response := c.call(closePd, join(number(1, pdID), number(2, 1), number(3, context)))
	check(response.number(1) == statusPending, response)
	c.call("MemoryService/CloseMr", number(1, mrID))
}

// A stream of WatchEvents.
type stream struct {
	grpc.ClientStream
	cancel context.CancelFunc
}

// watch opens a stream and waits until the daemon has confirmed it.
func (c *client) watch() stream {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	s := c.open(ctx)
	_, err := s.Header()
	check(err == nil, err)
	return stream{s, cancel}
}

func (c *client) open(ctx context.Context) grpc.ClientStream {
	s, err := c.connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/rnicd.v1.SessionService/WatchEvents")
	check(err == nil, err)
	err = s.SendMsg([]byte{})
	check(err == nil, err)
	err = s.CloseSend()
	check(err == nil, err)
	return s
}

func (s stream) next() (fields, error) {
	var event []byte
	err := s.RecvMsg(&event)
	return parse(event), err
}

func (s stream) expectEvent(context uint64) {
	event, err := s.next()
	check(err == nil && event.number(1) == context && event.message(2).number(2) == context, err, event)
}

func (s stream) expectLastEvent(cause string) {
	event, err := s.next()
	check(err == nil && event.message(3).text(1) == cause, err, event)
}

func (s stream) expectCancelled() {
	s.cancel()
	_, err := s.next()
	check(codeOf(err) == codes.Canceled, err)
}

func emptyUnary() {
	c := connect()
	defer c.close()
	response := c.call(listAdapters, nil)
	check(response.message(1).text(1) == "soft0", response)
}

func customMetadata() {
	c := connect()
	defer c.close()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "x-interop", "text", "x-interop-bin", "\x00\x01\xfe\xff")
	response, err := c.invoke(ctx, listAdapters, nil)
	check(err == nil && len(parse(response)) == 1, err)
}

func unimplementedMethod() {
	c := connect()
	defer c.close()
	c.expectRefused("AdapterService/Nothing", nil, codes.Unimplemented, methodUnknown, "")
}

func unimplementedService() {
	c := connect()
	defer c.close()
	c.expectRefused("NoService/Nothing", nil, codes.Unimplemented, methodUnknown, "")
}

func statusWithDetails() {
	c := connect()
	defer c.close()
	c.expectRefused(openSession, text(1, "Grüße, 世界"), codes.InvalidArgument, fieldOutOfRange, "label")
}

func malformedMessage() {
	c := connect()
	defer c.close()
	// A label of five bytes, of which one is there.
	c.expectRefused(openSession, []byte("\x0a\x05a"), codes.InvalidArgument, messageMalformed, "label")
}

func compressedRequest() {
	c := connect()
	defer c.close()
	c.expectRefused(openSession, text(1, strings.Repeat("a", 1000)), codes.Unimplemented, messageCompressed, "",
		grpc.UseCompressor(gzip.Name))
}

func largeUnary() {
	c := connect()
	defer c.close()
	c.expectRefused(openSession, text(1, strings.Repeat("a", 4*mib-100)), codes.InvalidArgument, fieldOutOfRange,
		"label")
}

func tooLargeUnary() {
	c := connectWithSession()
	defer c.close()
	for _, size := range []int{4 * mib, 5 * mib, 20 * mib} {
		c.expectRefused(openSession, text(1, strings.Repeat("a", size)), codes.ResourceExhausted, messageTooLarge, "")
	}
	c.busyPd()
}

func deadline() {
	c := connectWithSession()
	defer c.close()
	pdID, _ := c.busyPd()
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	call := c.start(ctx, closePd, number(1, pdID))
	_, err := stream{c.open(ctx), cancel}.next()
	check(codeOf(err) == codes.DeadlineExceeded, err)
	err = <-call
	check(codeOf(err) == codes.DeadlineExceeded, err)
	took := time.Since(began)
	check(took > 400*time.Millisecond, took)
}

func cancelBeforeResponse() {
	c := connectWithSession()
	defer c.close()
	pdID, mrID := c.busyPd()
	ctx, cancel := context.WithCancel(context.Background())
	call := c.start(ctx, closePd, number(1, pdID))
	c.expectAlive()
	cancel()
	err := <-call
	check(codeOf(err) == codes.Canceled, err)
	c.call("MemoryService/CloseMr", number(1, mrID))
	c.busyPd()
}

func serverStreaming() {
	c := connectWithSession()
	defer c.close()
	s := c.watch()
	defer s.cancel()
	for context := uint64(1); context <= 3; context++ {
		c.causeEvent(context)
		s.expectEvent(context)
	}
	c.call("SessionService/CloseSession", nil)
	s.expectLastEvent("closed")
	_, err := s.next()
	check(err == io.EOF, err)
}

func cancelStreamAfterBegin() {
	c := connectWithSession()
	defer c.close()
	for round := 0; round < 20; round++ {
		c.watch().expectCancelled()
	}
	s := c.watch()
	defer s.cancel()
	c.causeEvent(1)
	s.expectEvent(1)
}

func cancelStreamAfterFirstMessage() {
	c := connectWithSession()
	defer c.close()
	for context := uint64(1); context <= 3; context++ {
		s := c.watch()
		c.causeEvent(context)
		s.expectEvent(context)
		s.expectCancelled()
	}
}

func thousandConcurrentCalls() {
	c := connect()
	defer c.close()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	calls := make([]chan error, 1000)
	for i := range calls {
		calls[i] = c.start(ctx, listAdapters, nil)
	}
	for _, call := range calls {
		err := <-call
		check(err == nil, err)
	}
}

func keepAlive() {
	c := connectWithSession(grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime}))
	defer c.close()
	s := c.watch()
	defer s.cancel()
	time.Sleep(idleTime)
	c.causeEvent(1)
	s.expectEvent(1)
}

func goawayInTheMiddle() {
	c := connectWithSession()
	defer c.close()
	s := c.watch()
	defer s.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	calls := make([]chan error, 8)
	for i := range calls {
		pdID, _ := c.busyPd()
		calls[i] = c.start(ctx, closePd, number(1, pdID))
	}
	c.expectAlive()
	fmt.Println("stop the daemon")
	s.expectLastEvent("daemon_stopping")
	_, err := s.next()
	check(err != nil && codeOf(err) != codes.DeadlineExceeded, err)
	for _, call := range calls {
		err = <-call
		check(codeOf(err) != codes.DeadlineExceeded, err)
	}
	for err = nil; err == nil; {
		_, err = c.invoke(ctx, listAdapters, nil)
	}
	check(codeOf(err) != codes.DeadlineExceeded, err)
}

func runCase(name string, run func()) (ok bool) {
	defer func() {
		if problem := recover(); problem != nil {
			fmt.Printf("%s FAILED %v\n", name, problem)
		}
	}()
	run()
	fmt.Println(name, "ok")
	return true
}

func main() {
	failed := 0
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"empty_unary", emptyUnary},
		{"custom_metadata", customMetadata},
		{"unimplemented_method", unimplementedMethod},
		{"unimplemented_service", unimplementedService},
		{"status_with_utf8_and_details", statusWithDetails},
		{"malformed_message", malformedMessage},
		{"compressed_request", compressedRequest},
		{"large_unary", largeUnary},
		{"too_large_unary", tooLargeUnary},
		{"deadline", deadline},
		{"cancel_before_response", cancelBeforeResponse},
		{"server_streaming", serverStreaming},
		{"cancel_stream_after_begin", cancelStreamAfterBegin},
		{"cancel_stream_after_first_message", cancelStreamAfterFirstMessage},
		{"cancel_storm", cancelStorm},
		{"deadline_storm", deadlineStorm},
		{"thousand_concurrent_calls", thousandConcurrentCalls},
		{"keepalive", keepAlive},
		{"goaway_in_the_middle", goawayInTheMiddle},
	} {
		if !runCase(c.name, c.run) {
			failed++
		}
	}
	if failed > 0 {
		os.Exit(1)
	}
}
