package api

import (
	"context"
	"sync"
	"time"

	"github.com/service-dev/service/backend/internal/limit"
)

// Bounds of an addressQueue: per address and in total. One address can use only a small part of the total.
const (
	runningPerAddress, runningInTotal = 2, 16
	waitingPerAddress, waitingInTotal = 64, 1024
)

// addressQueue runs few calls per address at a time and limits how many wait.
type addressQueue struct {
	waiting, running chan struct{} // over all addresses

	mu        sync.Mutex
	addresses map[string]*queuedAddress // those with calls
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

// enter waits for the address's turn; the caller must then call leave. It returns a Refusal if too many already wait
// or ctx ends.
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

// add counts a call of the address, or returns nil if the address has too many.
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
