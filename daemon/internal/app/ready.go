package app

import (
	"os"
	"strconv"
	"strings"

	"github.com/service-dev/service/proto/rendezvous"
)

// readiness is the descriptor on which a client that started this daemon waits for one line; nil for none.
type readiness struct{ file *os.File }

// inherited takes the descriptor over, so that neither it nor its variable reaches an adapter.
func inherited() *readiness {
	value, ok := os.LookupEnv(rendezvous.ReadyVar)
	if !ok {
		return &readiness{}
	}
	_ = os.Unsetenv(rendezvous.ReadyVar)
	fd, err := strconv.ParseUint(value, 10, 16)
	if err != nil || fd < 3 {
		return &readiness{}
	}
	closeOnExec(uintptr(fd))
	return &readiness{file: os.NewFile(uintptr(fd), "ready")}
}

// ok tells the client that both sockets answer.
func (r *readiness) ok() { r.say("ready") }

// failed tells the client why there will be no daemon. After ok it says nothing.
func (r *readiness) failed(err error) {
	r.say("error: " + strings.Join(strings.Fields(err.Error()), " "))
}

func (r *readiness) say(line string) {
	if r.file == nil {
		return
	}
	_, _ = r.file.WriteString(line + "\n")
	_ = r.file.Close()
	r.file = nil
}
