// Package wiretext prevents text that is not UTF-8, such as paths and variables on older systems, from breaking gRPC
// calls. Protocol buffers reject such text. The package works for every message type.
package wiretext

import (
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the wrapped codec
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Codec returns gRPC's own codec with a fallback. If a message cannot be encoded, the codec repairs it and tries again.
func Codec() encoding.CodecV2 { return codec{encoding.GetCodecV2("proto")} }

type codec struct{ encoding.CodecV2 }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	out, err := c.CodecV2.Marshal(v)
	m, ok := v.(proto.Message)
	if err == nil || !ok {
		return out, err
	}
	m = proto.Clone(m)
	Repair(m)
	return c.CodecV2.Marshal(m)
}

// Repair replaces bytes that are not UTF-8 with U+FFFD in all texts of a message.
func Repair(m proto.Message) { repair(m.ProtoReflect()) }

func repair(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			repairMap(f, v.Map())
		case f.IsList():
			repairList(f, v.List())
		case f.Kind() == protoreflect.StringKind && !utf8.ValidString(v.String()):
			m.Set(f, valid(v))
		case f.Message() != nil:
			repair(v.Message())
		}
		return true
	})
}

func repairList(f protoreflect.FieldDescriptor, list protoreflect.List) {
	for i := range list.Len() {
		switch {
		case f.Kind() == protoreflect.StringKind:
			list.Set(i, valid(list.Get(i)))
		case f.Message() != nil:
			repair(list.Get(i).Message())
		}
	}
}

func repairMap(f protoreflect.FieldDescriptor, entries protoreflect.Map) {
	type entry struct {
		key   protoreflect.MapKey
		value protoreflect.Value
	}
	var broken []entry
	entries.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		if f.MapValue().Message() != nil {
			repair(value.Message())
		}
		badKey := f.MapKey().Kind() == protoreflect.StringKind && !utf8.ValidString(key.String())
		badValue := f.MapValue().Kind() == protoreflect.StringKind && !utf8.ValidString(value.String())
		if badKey || badValue {
			broken = append(broken, entry{key, value})
		}
		return true
	})
	for _, e := range broken {
		entries.Clear(e.key)
		if f.MapKey().Kind() == protoreflect.StringKind {
			e.key = valid(e.key.Value()).MapKey()
		}
		if f.MapValue().Kind() == protoreflect.StringKind {
			e.value = valid(e.value)
		}
		entries.Set(e.key, e.value)
	}
}

func valid(v protoreflect.Value) protoreflect.Value {
	return protoreflect.ValueOfString(strings.ToValidUTF8(v.String(), "\uFFFD"))
}
