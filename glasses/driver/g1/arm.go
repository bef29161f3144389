package g1

import (
	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/internal/problem"
)

// job is a command to one arm. It consists of its packets and the expected answer to the last one.
type job struct {
	packets [][]byte
	answer  byte  // the first byte of the answer; 0 if none is expected
	timeout int64 // ms to wait for the answer
	tries   int
	// check reports whether an answer with the expected first byte means success. If check is nil, C9 or CB as the
	// second byte means success.
	check func(data []byte) bool
	// done is called once. problem is "" on success, and a code of package driver otherwise.
	done func(problem string)
}

// arm is one of the two peripherals. It does one job at a time, because answers differ only in their first byte.
type arm struct {
	d    *Driver
	key  string
	up   bool
	mtu  int
	down int64 // when it was disconnected

	jobs    []*job
	sent    int  // number of packets of the first job passed to the carrier
	writing bool // the last write has not been reported yet
	pausing bool
	waiting *driver.Timer // for the answer
	failed  string        // why the last attempt of the first job failed
	tried   int

	settling *driver.Timer // until the first write

	missed   int // consecutive heartbeats without an answer
	beat     byte
	beating  bool // a heartbeat is queued or unanswered
	battery  int  // percent; -1 if unknown
	charging bool

	shown   *picture // the picture on the panel; nil if unknown
	sending *picture
	gaveUp  *picture // picture that failed; not tried again until the picture or the link changes
}

// add queues a job. An urgent job is placed before all jobs that have not started.
func (a *arm) add(j *job, urgent bool) {
	if !a.up {
		j.done(problem.CodeLost)
		return
	}
	if urgent && len(a.jobs) > 1 {
		a.jobs = append(a.jobs[:1], append([]*job{j}, a.jobs[1:]...)...)
	} else {
		a.jobs = append(a.jobs, j)
	}
	a.pump()
}

// request queues a command that consists of one packet and whose answer begins with the same byte.
func (a *arm) request(data []byte, check func([]byte) bool, done func(problem string)) {
	a.add(&job{packets: [][]byte{data}, answer: data[0], timeout: answerTimeout, tries: maxTries, check: check,
		done: done},
		false)
}

// pump sends the next packet of the first job, or ends the job.
func (a *arm) pump() {
	if !a.up || a.writing || a.pausing || a.waiting != nil || len(a.jobs) == 0 {
		return
	}
	j := a.jobs[0]
	if a.sent < len(j.packets) {
		data := j.packets[a.sent]
		a.sent++
		if a.d.write(a, data) {
			a.writing = true
			return
		}
		a.finish(problem.CodeRefused)
		return
	}
	if j.answer == 0 {
		a.finish("")
		return
	}
	a.waiting = a.d.Timers.Add(a.d.Now+j.timeout, func() {
		a.waiting = nil
		a.again(problem.CodeTimeout)
	})
}

// written continues after the carrier has written a packet.
func (a *arm) written(problem string) {
	if !a.writing {
		return
	}
	a.writing = false
	if len(a.jobs) == 0 { // the answer arrived before the carrier reported the write
		return
	}
	if problem != "" {
		a.again(problem)
		return
	}
	if j := a.jobs[0]; a.sent < len(j.packets) {
		a.pausing = true
		a.d.Timers.Add(a.d.Now+packetPause, func() {
			a.pausing = false
			a.pump()
		})
		return
	}
	a.pump()
}

// again retries the first job, or fails it with problem after the last attempt.
func (a *arm) again(problem string) {
	a.tried++
	if a.tried >= a.jobs[0].tries {
		a.finish(problem)
		return
	}
	a.sent = 0
	a.pump()
}

// answered reports whether data answers the first job, and if so completes the job.
func (a *arm) answered(data []byte) bool {
	if len(a.jobs) == 0 {
		return false
	}
	j := a.jobs[0]
	if j.answer != data[0] || a.sent < len(j.packets) {
		return false
	}
	check := j.check
	if check == nil {
		check = isAccepted
	}
	a.d.Timers.Stop(a.waiting)
	a.waiting = nil
	if check(data) {
		a.finish("")
	} else {
		a.again(problem.CodeRefused)
	}
	return true
}

// isAccepted reports whether the second byte of an answer has a value that means success.
func isAccepted(data []byte) bool {
	return len(data) > 1 && (data[1] == answerOK || data[1] == answerContinue)
}

func (a *arm) finish(problem string) {
	j := a.jobs[0]
	a.jobs = a.jobs[1:]
	a.sent, a.tried = 0, 0
	a.d.Timers.Stop(a.waiting)
	a.waiting = nil
	j.done(problem)
	a.pump()
}

// lost resets all state that depends on the link.
func (a *arm) lost() {
	jobs := a.jobs
	a.up, a.jobs, a.sent, a.tried, a.missed = false, nil, 0, 0, 0
	a.writing, a.down = false, a.d.Now
	a.shown, a.sending, a.gaveUp = nil, nil, nil
	a.d.Timers.Stop(a.waiting)
	a.d.Timers.Stop(a.settling)
	a.waiting, a.settling = nil, nil
	for _, j := range jobs {
		j.done(problem.CodeLost)
	}
}

// abandonPictures ends a transfer after the packet being sent and drops the jobs behind it.
func (a *arm) abandonPictures() {
	if len(a.jobs) == 0 || a.sending == nil || a.sending.isDark() {
		return
	}
	first := a.jobs[0]
	a.jobs = a.jobs[:1]
	first.packets, first.tries = first.packets[:a.sent], 1
	first.done = func(string) {
		a.sending = nil
		a.d.reconcile()
	}
}
