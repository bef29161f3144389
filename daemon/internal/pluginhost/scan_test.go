package pluginhost

import (
	"fmt"
	"io"
	"testing"

	"google.golang.org/grpc"

	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// manyPairs is a scan in which an adapter reports a number of pairs, each twice.
type manyPairs struct {
	grpc.ClientStream
	left int
}

func (s *manyPairs) Recv() (*pluginv1.ScanResponse, error) {
	if s.left == 0 {
		return nil, io.EOF
	}
	s.left--
	return &pluginv1.ScanResponse{Name: fmt.Sprint("pair ", s.left/2), Links: []*pluginv1.FoundLink{
		{Key: "left", Found: true}, {Key: "right", Found: s.left%2 == 0},
	}}, nil
}

func TestReceivePairs_BoundsAndMergesThem(t *testing.T) {
	t.Parallel()
	found, err := receivePairs(&manyPairs{left: 2 * (maxFound + 5)})
	if err != nil || len(found) != maxFound {
		t.Fatalf("got %d pairs and %v, want %d", len(found), err, maxFound)
	}
	for _, p := range found {
		if !p.Parts[1].Found {
			t.Errorf("%s: the right arm that was found later is missing", p.Name)
		}
	}
}
