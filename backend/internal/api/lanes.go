package api

import (
	"context"
	"sync"
	"time"

	"github.com/service-dev/service/backend/internal/limit"
)

// Bounds of lanes: of one address, and of all together, which an address fills a small part of.
const (
	passingEach, passingAll = 2, 16
	waitingEach, waitingAll = 64, 1024
)

// lanes let few calls of each address through at a time and bound how many wait for that.
type lanes struct {
	waiting, passing chan struct{} // of all

	mu    sync.Mutex
	lanes map[string]*lane // of who is inside
}

type lane struct {
	inside  int // passing or waiting; guarded by lanes.mu
	passing chan struct{}
}

func newLanes() *lanes {
	return &lanes{waiting: make(chan struct{}, waitingAll), passing: make(chan struct{}, passingAll), lanes: map[string]*lane{}}
}

// enter waits for the address's turn; leave must be called then. The error is a refusal when too many wait already, or
// the end of ctx.
func (l *lanes) enter(ctx context.Context, address string) (leave func(), err error) {
	select {
	case l.waiting <- struct{}{}:
		defer func() { <-l.waiting }()
	default:
		return nil, tooMany(time.Second)
	}
	key := limit.Caller(address)
	own := l.join(key)
	if own == nil {
		return nil, tooMany(time.Second)
	}
	for _, turn := range []chan struct{}{own.passing, l.passing} {
		select {
		case turn <- struct{}{}:
			defer func() {
				if err != nil {
					<-turn
				}
			}()
		case <-ctx.Done():
			l.part(key, own)
			return nil, ctx.Err()
		}
	}
	return func() {
		<-l.passing
		<-own.passing
		l.part(key, own)
	}, nil
}

// join gives the lane of an address; nil when it is full.
func (l *lanes) join(key string) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.lanes[key]
	if own == nil {
		own = &lane{passing: make(chan struct{}, passingEach)}
		l.lanes[key] = own
	}
	if own.inside >= passingEach+waitingEach {
		return nil
	}
	own.inside++
	return own
}

func (l *lanes) part(key string, own *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own.inside--; own.inside == 0 {
		delete(l.lanes, key)
	}
}
