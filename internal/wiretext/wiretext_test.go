package wiretext

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

func text(s string) *structpb.Value { return structpb.NewStringValue(s) }

func TestCodec_RepairsInvalidText(t *testing.T) {
	in := &structpb.Struct{Fields: map[string]*structpb.Value{
		"dir":  text("/home/\xff"),
		"link": structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"detail": text("a\xc3")}}),
		"list": structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{text("b\xfe"), text("good")}}),
	}}
	out, err := Codec().Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var got structpb.Struct
	if err := Codec().Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	list := got.GetFields()["list"].GetListValue().GetValues()
	if got.GetFields()["dir"].GetStringValue() != "/home/\uFFFD" ||
		got.GetFields()["link"].GetStructValue().GetFields()["detail"].GetStringValue() != "a\uFFFD" ||
		list[0].GetStringValue() != "b\uFFFD" || list[1].GetStringValue() != "good" {
		t.Errorf("unexpected repaired message %v", &got)
	}
	if in.GetFields()["dir"].GetStringValue() != "/home/\xff" {
		t.Error("the caller's message was modified")
	}
}

func TestRepair_Maps(t *testing.T) {
	m := &structpb.Struct{Fields: map[string]*structpb.Value{"A\xff": text("x"), "B": text("y\xff"), "C": text("good")}}
	Repair(m)
	want := &structpb.Struct{Fields: map[string]*structpb.Value{
		"A\uFFFD": text("x"), "B": text("y\uFFFD"), "C": text("good"),
	}}
	if !proto.Equal(m, want) {
		t.Errorf("unexpected repaired map %v", m)
	}
}
