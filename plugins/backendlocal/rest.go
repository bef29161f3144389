package backendlocal

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// Rest reports whether the embedded backend has been idle long enough to be stopped.
func (l *local) Rest(ctx context.Context, r *pluginv1.RestRequest) (*pluginv1.RestResponse, error) {
	s, err := l.started()
	if err != nil {
		return nil, err
	}
	rests, err := s.Rest(ctx, time.Duration(r.GetIdleMs())*time.Millisecond)
	return &pluginv1.RestResponse{Rests: rests}, err
}

// inherited returns the listeners that the daemon passed to this process, if any.
func inherited() ([]*net.TCPListener, error) {
	text := os.Getenv(pluginv1.ListenersKey)
	if text == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", pluginv1.ListenersKey, err)
	}
	var all []*net.TCPListener
	for i := range n {
		file := os.NewFile(uintptr(pluginv1.FirstListener+i), "listener")
		l, err := net.FileListener(file) // duplicates the descriptor
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("use the daemon's listener %d: %w", i, err)
		}
		tcp, ok := l.(*net.TCPListener)
		if !ok {
			return nil, fmt.Errorf("the daemon's listener %d at %s is not a TCP listener", i, l.Addr())
		}
		all = append(all, tcp)
	}
	return all, nil
}
