package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/service-dev/service/backend/internal/config"
)

const (
	maxQueue     = 1000             // messages waiting, including retries
	maxTries     = 5                // a message is dropped after this many tries
	timeout      = 10 * time.Second // limit per message
	drainTimeout = 5 * time.Second  // limit for sending the remaining messages when Serve ends
)

// ErrFull is returned when the queue is full.
var ErrFull = errors.New("mail queue is full")

// Options are the arguments of New. All fields except Mail have defaults.
type Options struct {
	// Mail describes the operator's SMTP server. Without a host, no mail is sent.
	Mail config.Mail
	// TLS overrides the default TLS configuration.
	TLS *tls.Config
	// Wait returns the delay before the next try, given the number of failed tries. The default is 30 s, doubled after
	// each try, with jitter.
	Wait func(tries int) time.Duration
	Log  *slog.Logger
}

// Sender sends messages one at a time while Serve is running.
type Sender struct {
	o      Options
	client *gomail.Client // nil without a server
	queue  chan Message
}

// attempt is a message to send, with the number of failed tries and the time of the next one.
type attempt struct {
	message Message
	tries   int
	due     time.Time
}

// New checks the settings without connecting.
func New(o Options) (*Sender, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	s := &Sender{o: o, queue: make(chan Message, maxQueue)}
	if o.Mail.Host == "" {
		return s, nil
	}
	if err := gomail.NewMsg().From(o.Mail.From); err != nil {
		return nil, errors.New("setting smtp_from: not a valid sender address")
	}
	client, err := gomail.NewClient(o.Mail.Host, options(o)...)
	if err != nil {
		return nil, fmt.Errorf("configure the mail server: %w", err)
	}
	s.client = client
	return s, nil
}

func options(o Options) []gomail.Option {
	all := []gomail.Option{gomail.WithPort(o.Mail.Port), gomail.WithTimeout(timeout), gomail.WithHELO("localhost"),
		gomail.WithTLSPolicy(gomail.TLSMandatory)}
	switch o.Mail.TLS {
	case "tls":
		all = append(all, gomail.WithSSL())
	case "none":
		all = append(all, gomail.WithTLSPolicy(gomail.NoTLS))
	}
	if o.TLS != nil {
		all = append(all, gomail.WithTLSConfig(o.TLS))
	}
	if o.Mail.User != "" {
		kind := gomail.SMTPAuthAutoDiscover
		if o.Mail.TLS == "none" { // the configuration allows this only for a server on this machine
			kind = gomail.SMTPAuthPlainNoEnc
		}
		all = append(all, gomail.WithSMTPAuth(kind), gomail.WithUsername(o.Mail.User), gomail.WithPassword(o.Mail.Password))
	}
	return all
}

// wait returns 30 s, doubled after each try. The jitter spreads out the retries of replicas.
func wait(tries int) time.Duration {
	d := 30 * time.Second << (tries - 1)
	return d + rand.N(d/4)
}

// Enabled reports whether a mail server is configured.
func (s *Sender) Enabled() bool { return s.client != nil }

// Queue queues a message for Serve to send. It never blocks, and returns ErrFull if the queue is full. Without a mail
// server it logs the message as dropped.
func (s *Sender) Queue(m Message) error {
	if !s.Enabled() {
		s.o.Log.Warn("dropped mail: no mail server is configured", "account", m.AccountID)
		return nil
	}
	select {
	case s.queue <- m:
		return nil
	default:
		return ErrFull
	}
}

// Serve sends queued messages until ctx ends, then spends up to drainTimeout on the messages left.
func (s *Sender) Serve(ctx context.Context) error {
	var again []attempt
	for {
		next := time.NewTimer(untilFirst(again))
		select {
		case <-ctx.Done():
			next.Stop()
			s.drain(ctx, again)
			return nil
		case m := <-s.queue:
			again = s.try(ctx, attempt{message: m}, again)
		case <-next.C:
			again = s.retry(ctx, again)
		}
		next.Stop()
	}
}

// untilFirst returns the time until the first message is due.
func untilFirst(again []attempt) time.Duration {
	first := time.Hour
	for _, w := range again {
		first = min(first, time.Until(w.due))
	}
	return first
}

func (s *Sender) retry(ctx context.Context, again []attempt) []attempt {
	var left []attempt
	now := time.Now()
	for _, w := range again {
		if w.due.After(now) {
			left = append(left, w)
		} else {
			left = s.try(ctx, w, left)
		}
	}
	return left
}

// try sends a message or schedules a retry. It does not count an attempt that was interrupted because ctx ended.
func (s *Sender) try(ctx context.Context, w attempt, again []attempt) []attempt {
	err := s.send(ctx, w.message)
	if err == nil {
		return again
	}
	if ctx.Err() == nil {
		w.tries++
	}
	if !temporary(err) || w.tries >= maxTries || len(again) >= maxQueue {
		s.drop(w, err)
		return again
	}
	s.o.Log.Info("failed to send mail, will retry", "account", w.message.AccountID, "try", w.tries, "err", reason(err))
	w.due = time.Now().Add(s.o.Wait(max(w.tries, 1)))
	return append(again, w)
}

func (s *Sender) drop(w attempt, err error) {
	s.o.Log.Warn("dropped mail", "account", w.message.AccountID, "try", w.tries, "err", reason(err))
}

// drain tries once more to send the remaining messages.
func (s *Sender) drain(ctx context.Context, again []attempt) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	for {
		select {
		case m := <-s.queue:
			again = append(again, attempt{message: m})
			continue
		default:
		}
		break
	}
	for _, w := range again {
		if err := s.send(last, w.message); err != nil {
			s.drop(w, err)
		}
	}
}

func (s *Sender) send(ctx context.Context, m Message) error {
	msg, err := s.compose(m)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.client.DialAndSendWithContext(bounded, msg)
}

// errMessage is returned for a message that cannot be encoded.
var errMessage = errors.New("message cannot be encoded")

// temporary reports whether a retry may help. It returns false only if the server refused permanently or the message is
// invalid.
func temporary(err error) bool {
	var refused *gomail.SendError
	if errors.As(err, &refused) && refused.ErrorCode() >= 500 {
		return false
	}
	return !errors.Is(err, errMessage)
}

// reason describes an error without the recipient's address, which the library includes in its errors.
func reason(err error) string {
	var refused *gomail.SendError
	switch {
	case errors.Is(err, errMessage):
		return errMessage.Error()
	case errors.As(err, &refused):
		return fmt.Sprintf("refused with code %d", refused.ErrorCode())
	case errors.Is(err, context.DeadlineExceeded):
		return "the mail server did not respond in time"
	}
	return "the mail server cannot be used"
}
