package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
)

// together tests that codes inserted at the same time do not affect each other: a code whose user code is taken fails
// alone, and every other one is stored with its trail line.
func (f *fixture) together(t *testing.T) {
	now := f.clock.now()
	ref := audit.NewTrailRef(hash.Hash)
	insert := func(device, user string) error {
		return f.store.InsertCode(f.ctx, link.Code{
			DeviceHash: device, UserHash: user, State: link.Pending, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
			Interval: 5 * time.Second, Requester: link.Requester{Host: "desk", OS: "os " + device, IP: "10.0.0.1"},
		}, audit.Trace{Action: audit.TrailIssue, At: now, Address: "10.0.0.1", Ref: ref})
	}
	fatal(t, insert("first", "taken"))
	const n = 100
	errs := make([]error, n)
	user := func(i int) string {
		if i%10 == 7 {
			return "taken"
		}
		return fmt.Sprint("u", i)
	}
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = insert(fmt.Sprint("d", i), user(i)) })
	}
	all.Wait()
	for i, err := range errs {
		if user(i) == "taken" {
			if !errors.Is(err, link.ErrDuplicate) {
				t.Errorf("code %d with a taken user code: got error %v, want ErrDuplicate", i, err)
			}
			continue
		}
		c, readErr := f.store.CodeByUser(f.ctx, user(i))
		same := c.DeviceHash == fmt.Sprint("d", i) && c.Requester.OS == fmt.Sprint("os d", i) && c.AccountID == "" &&
			c.State == link.Pending && c.Interval == 5*time.Second && c.ExpiresAt.Equal(now.Add(time.Hour))
		if err != nil || readErr != nil || !same {
			t.Errorf("code %d: got %+v, want it stored (errors %v, %v)", i, c, err, readErr)
		}
	}
	lines := must(f.store.Trail(f.ctx, audit.TrailFilter{Address: ref("address", "10.0.0.1")}))(t)
	if len(lines) != 1+n*9/10 {
		t.Errorf("the trail has %d lines, want one for each stored code, %d", len(lines), 1+n*9/10)
	}
}
