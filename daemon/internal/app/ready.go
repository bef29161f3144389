package app

import (
	"os"
	"strconv"
	"strings"

	"github.com/service-dev/service/internal/rendezvous"
)

// readyPipe is the descriptor from which a client that started this daemon reads one line; its file may be nil.
type readyPipe struct{ file *os.File }

// openReadyPipe takes over the descriptor, so that adapters inherit neither it nor its environment variable. The daemon
// keeps no other descriptor of the client that started it: it would hold that client's locks and pipes for hours.
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

// failed reports why the daemon did not start. After ok it does nothing.
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
