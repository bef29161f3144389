package frame

import (
	"strconv"
	"strings"

	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/internal/problem"
)

// packet is a value to write, and a description of its answer.
type packet struct {
	data    []byte
	timeout int64
	// answers reports whether a notification is the answer. If answers is nil, no answer is expected and the packet
	// ends after timeout.
	answers func(data []byte) bool
	tries   int
	done    func(code string) // called once unless the queue is cleared
	isData  bool              // data begins with an operation of boot.lua
}

// queue writes one packet at a time, because a Frame can buffer only one packet until its Lua has received it
// (frame-codebase, source/application/lua_libraries/bluetooth.c).
type queue struct {
	d       *Driver
	up      bool
	mtu     int
	waiting []*packet
	flight  *packet // the packet being sent; nil if there is none
	due     bool    // flight must be written
	writing bool    // the last write has not been reported yet
	tried   int
	seq     byte // sequence number of the last data packet
	timer   *driver.Timer
}

func (q *queue) open(mtu int) { q.up, q.mtu = true, mtu }

func (q *queue) close() {
	q.clear()
	q.up, q.writing = false, false
}

// clear drops all packets without calling their done functions.
func (q *queue) clear() {
	q.waiting, q.flight = nil, nil
	q.d.Timers.Stop(q.timer)
}

// room returns the number of argument bytes that fit in one data packet.
func (q *queue) room() int { return q.mtu - 3 - 3 }

// add appends a packet to the queue.
func (q *queue) add(p *packet) {
	q.waiting = append(q.waiting, p)
	q.pump()
}

// urgent inserts a packet at the front of the queue.
func (q *queue) urgent(p *packet) {
	q.waiting = append([]*packet{p}, q.waiting...)
	q.pump()
}

// data returns the packet for an operation of boot.lua.
func data(op byte, arguments []byte, done func(code string)) *packet {
	return &packet{data: append([]byte{op}, arguments...), isData: true, timeout: dataTimeout, tries: maxTries, done: done}
}

func (q *queue) pump() {
	if !q.up || q.writing {
		return
	}
	if q.flight == nil {
		if len(q.waiting) == 0 {
			return
		}
		q.flight, q.waiting = q.waiting[0], q.waiting[1:]
		q.tried, q.due = 0, true
		if q.flight.isData {
			q.number(q.flight)
		}
	}
	if !q.due {
		return
	}
	q.due = false
	if !q.write(q.flight.data) {
		q.finish(problem.CodeRefused)
		return
	}
	q.timer = q.d.After(q.flight.timeout, q.expired)
}

// number sets the sequence number of a data packet. The packet's acknowledgement repeats the number.
func (q *queue) number(p *packet) {
	q.seq++
	seq := q.seq
	p.data = append([]byte{byteData, seq}, p.data...)
	p.answers = func(data []byte) bool {
		return len(data) == 4 && data[0] == byteData && data[1] == saysAck && data[2] == seq
	}
}

// write outputs a value if it is permitted, and reports whether it is. All writes use this method.
func (q *queue) write(data []byte) bool {
	if !permitted(data) || len(data) > q.mtu-3 {
		return false
	}
	q.writing = true
	q.d.Write(Main, data)
	return true
}

// written continues after the carrier has completed a write.
func (q *queue) written(code string) {
	if !q.writing {
		return
	}
	q.writing = false
	if code != "" && q.flight != nil && !q.due {
		q.again(code)
		return
	}
	q.pump()
}

func (q *queue) expired() {
	if q.flight.answers == nil {
		q.finish("")
		return
	}
	q.again(problem.CodeTimeout)
}

// again retries the packet in flight, or fails it with code after the last attempt.
func (q *queue) again(code string) {
	q.d.Timers.Stop(q.timer)
	if q.tried++; q.tried >= q.flight.tries {
		q.finish(code)
		return
	}
	q.due = true
	q.pump()
}

// answered processes a notification that may be an answer. It reports whether a packet was waiting for that answer.
func (q *queue) answered(data []byte) bool {
	p := q.flight
	if p == nil || p.answers == nil || !p.answers(data) {
		return false
	}
	code := ""
	if p.isData && data[3] != 0 {
		code = problem.CodeRefused
	}
	q.finish(code)
	return true
}

func (q *queue) finish(code string) {
	p := q.flight
	q.d.Timers.Stop(q.timer)
	q.flight = nil
	p.done(code)
	q.pump()
}

// printed reports whether a notification is a number that the REPL printed. A Halo appends a line break.
func printed(data []byte, number int) bool {
	return strings.TrimSuffix(string(data), "\n") == strconv.Itoa(number)
}
