package app

import (
	"os"
	"strconv"
	"strings"

	"github.com/service-dev/service/internal/rendezvous"
)

// readyPipe is the pipe on which the client that started this daemon waits for one line. file may be nil.
type readyPipe struct{ file *os.File }

// openReadyPipe removes the pipe's descriptor and variable from the environment of adapters. It closes all other
// descriptors inherited from the client, because the daemon would hold the client's locks and pipes for hours.
func openReadyPipe() *readyPipe {
	value, ok := os.LookupEnv(rendezvous.ReadyVar)
	if !ok {
		return &readyPipe{}
	}
	_ = os.Unsetenv(rendezvous.ReadyVar)
	fd, err := strconv.ParseUint(value, 10, 16)
	if err != nil || fd < 3 {
		return &readyPipe{}
	}
	closeOnExec(uintptr(fd))
	closeInherited()
	return &readyPipe{file: os.NewFile(uintptr(fd), "ready")}
}

// ok reports that both sockets accept requests.
func (r *readyPipe) ok() { r.say("ready") }

// failed reports that the daemon did not start because of err. It has no effect after ok.
func (r *readyPipe) failed(err error) {
	r.say("error: " + strings.Join(strings.Fields(err.Error()), " "))
}

func (r *readyPipe) say(line string) {
	if r.file == nil {
		return
	}
	_, _ = r.file.WriteString(line + "\n")
	_ = r.file.Close()
	r.file = nil
}
