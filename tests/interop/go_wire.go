package main

import (
	"fmt"

	"github.com/golang/protobuf/proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// rawCodec sends and receives the bytes of messages.
type rawCodec struct{}

func (rawCodec) Marshal(value interface{}) ([]byte, error) { return value.([]byte), nil }

func (rawCodec) Unmarshal(data []byte, value interface{}) error {
	*value.(*[]byte) = append([]byte(nil), data...)
	return nil
}

func (rawCodec) Name() string { return "proto" }

// A protobuf field's tag: its number and how its value is written.
const (
	varint    = 0
	delimited = 2
)

func number(field, value uint64) []byte {
	var buffer proto.Buffer
	buffer.EncodeVarint(field<<3 | varint)
	buffer.EncodeVarint(value)
	return buffer.Bytes()
}

func text(field uint64, value string) []byte {
	var buffer proto.Buffer
	buffer.EncodeVarint(field<<3 | delimited)
	buffer.EncodeStringBytes(value)
	return buffer.Bytes()
}

func join(parts ...[]byte) []byte {
	var all []byte
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

// fields has the last value of each field of a message, a uint64 or a []byte.
type fields map[uint64]interface{}

func parse(message []byte) fields {
	found := fields{}
	for len(message) > 0 {
		var tag, value uint64
		tag, message = cutVarint(message)
		value, message = cutVarint(message)
		if tag&7 == varint {
			found[tag>>3] = value
		} else {
			check(tag&7 == delimited && value <= uint64(len(message)), tag, value)
			found[tag>>3] = message[:value]
			message = message[value:]
		}
	}
	return found
}

func cutVarint(bytes []byte) (value uint64, rest []byte) {
	value, size := proto.DecodeVarint(bytes)
	check(size > 0, bytes)
	return value, bytes[size:]
}

func (f fields) number(field uint64) uint64 {
	value, _ := f[field].(uint64)
	return value
}

func (f fields) text(field uint64) string {
	value, _ := f[field].([]byte)
	return string(value)
}

func (f fields) message(field uint64) fields { return parse([]byte(f.text(field))) }

// detailOf is the ErrorDetail in the trailers of a failed call, whose status they repeat.
func detailOf(err error) fields {
	s, isStatus := status.FromError(err)
	check(err != nil && isStatus && len(s.Proto().Details) == 1, "no detail", err)
	detail := s.Proto().Details[0]
	check(detail.TypeUrl == "type.googleapis.com/rnicd.v1.ErrorDetail", detail.TypeUrl)
	parsed := parse(detail.Value)
	check(s.Message() == parsed.text(8), s.Message(), parsed)
	return parsed
}

func codeOf(err error) codes.Code { return status.Code(err) }

func check(condition bool, values ...interface{}) {
	if !condition {
		panic(fmt.Sprintf("unexpected: %v", values))
	}
}
