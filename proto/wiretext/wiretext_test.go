package wiretext

import (
	"testing"

	"google.golang.org/protobuf/proto"

	controlv1 "github.com/service-dev/service/proto/control/v1"
)

func TestCodec_RepairsWhatCannotBeEncoded(t *testing.T) {
	in := &controlv1.StatusResponse{
		ConfigDir: "/home/\xff", Link: &controlv1.Link{Detail: "a\xc3"}, Plugins: []*controlv1.Plugin{{Path: "b\xfe"},
			{Path: "good"}},
	}
	out, err := Codec().Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var got controlv1.StatusResponse
	if err := Codec().Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if got.GetConfigDir() != "/home/\uFFFD" || got.GetLink().GetDetail() != "a\uFFFD" ||
		got.GetPlugins()[0].GetPath() != "b\uFFFD" || got.GetPlugins()[1].GetPath() != "good" {
		t.Errorf("unexpected repaired message %v", &got)
	}
	if in.GetConfigDir() != "/home/\xff" {
		t.Error("the caller's message was modified")
	}
}

func TestRepair_Maps(t *testing.T) {
	c := &controlv1.Caller{Env: map[string]string{"A\xff": "x", "B": "y\xff", "C": "good"}}
	Repair(c)
	if !proto.Equal(c, &controlv1.Caller{Env: map[string]string{"A\uFFFD": "x", "B": "y\uFFFD", "C": "good"}}) {
		t.Errorf("unexpected repaired caller %v", c)
	}
}
