package session

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/problem"
)

// reachVariable makes this test program try to reach the address in the variable.
const reachVariable = "TEST_REACH_APPS"

func TestReachApps_NamesAddressAndCause(t *testing.T) {
	if address := os.Getenv(reachVariable); address != "" {
		var e *problem.Error
		if err := reachApps(t.Context(), "ws://"+address+"/api/sessions/loc_x/app"); errors.As(err, &e) {
			fmt.Println("answer:", e.Code, e.Retryable, e.Message, "|", e.FixHint)
		}
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := reachApps(t.Context(), "ws://"+address+"/api/sessions/loc_x/app"); err != nil {
		t.Errorf("an address that is served: %v", err)
	}
	child := exec.Command("unshare", "-rn", os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), reachVariable+"="+address)
	if exec.Command("unshare", "-rn", "true").Run() == nil {
		out, err := child.CombinedOutput()
		want := "answer: " + problem.CodeLoopbackUnreachable + " false apps cannot attach at " + address +
			" from here: dial tcp " + address +
			": connect: network is unreachable | Allow connections to 127.0.0.1 in the sandbox"
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("in a network of its own: %v, %s; want %s", err, out, want)
		}
	}
	_ = listener.Close()
	var e *problem.Error
	if err := reachApps(t.Context(), "ws://"+address); !errors.As(err, &e) || !strings.Contains(e.Message, address) ||
		!strings.Contains(e.Message, "refused") {
		t.Errorf("an address that is not served: %v, want it with the cause", err)
	}
}
