package api

import (
	"context"
	"sync"
	"time"

	"github.com/service-dev/service/backend/internal/limit"
)

// Limits of an addressQueue: per address and for all addresses. One address can use only a small part of the total.
const (
	runningPerAddress, runningInTotal = 2, 16
	waitingPerAddress, waitingInTotal = 64, 1024
)

// addressQueue limits how many calls run at a time and how many wait, per address and for all addresses together.
type addressQueue struct {
	waiting, running chan struct{} // for all addresses together

	mu        sync.Mutex
	addresses map[string]*queuedAddress // addresses with running or waiting calls
}

type queuedAddress struct {
	calls   int // running or waiting; guarded by addressQueue.mu
	running chan struct{}
}

func newAddressQueue() *addressQueue {
	return &addressQueue{
		waiting: make(chan struct{}, waitingInTotal), running: make(chan struct{}, runningInTotal),
		addresses: map[string]*queuedAddress{},
	}
}

// enter waits for the address's turn. The caller must call leave afterwards. It returns a Refusal if too many calls
// already wait, and an error if ctx ends.
func (q *addressQueue) enter(ctx context.Context, address string) (leave func(), err error) {
	select {
	case q.waiting <- struct{}{}:
		defer func() { <-q.waiting }()
	default:
		return nil, tooMany(time.Second)
	}
	key := limit.Caller(address)
	own := q.add(key)
	if own == nil {
		return nil, tooMany(time.Second)
	}
	for _, turn := range []chan struct{}{own.running, q.running} {
		select {
		case turn <- struct{}{}:
			defer func() {
				if err != nil {
					<-turn
				}
			}()
		case <-ctx.Done():
			q.remove(key, own)
			return nil, ctx.Err()
		}
	}
	return func() {
		<-q.running
		<-own.running
		q.remove(key, own)
	}, nil
}

// add counts a call from the address. It returns nil if the address already has too many calls.
func (q *addressQueue) add(key string) *queuedAddress {
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.addresses[key]
	if own == nil {
		own = &queuedAddress{running: make(chan struct{}, runningPerAddress)}
		q.addresses[key] = own
	}
	if own.calls >= runningPerAddress+waitingPerAddress {
		return nil
	}
	own.calls++
	return own
}

func (q *addressQueue) remove(key string, own *queuedAddress) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if own.calls--; own.calls == 0 {
		delete(q.addresses, key)
	}
}
