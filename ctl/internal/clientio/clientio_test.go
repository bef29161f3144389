package clientio

import (
	"encoding/json"
	"net"
	"path/filepath"
	"testing"

	"github.com/service-dev/service/internal/clientio"
)

func TestServe_AnswersEachRequest(t *testing.T) {
	ours, theirs := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- Serve(t.Context(), theirs) }()
	in, out := json.NewDecoder(ours), json.NewEncoder(ours)
	path := filepath.Join(t.TempDir(), "a")
	for id, r := range []clientio.Request{{Op: clientio.Write, Path: clientio.Path(path), Data: []byte("x"), Mode: 0o600,
		DirMode: 0o700}, {Op: clientio.Read, Path: clientio.Path(path), Limit: 9}} {
		r.ID = int64(id)
		if err := out.Encode(r); err != nil {
			t.Fatal(err)
		}
		var answer clientio.Response
		if err := in.Decode(&answer); err != nil || answer.ID != r.ID || answer.Code != "" {
			t.Fatalf("%s: got response %+v, %v", r.Op, answer, err)
		}
	}
	ours.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
