package term

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Instruction and Notice are what spec 4.4 asks login to say.
const Instruction = "Check that the 8-character code on the page is the code shown here. If they differ, do not approve."

// Notice tells how long login waits.
func Notice(seconds uint32) string {
	return fmt.Sprintf("Polling for up to %d s for your approval; Ctrl-C cancels.", seconds)
}

// Code shows a user code large, and where to approve it. word is what the page asks for to sign in; empty where it asks for none.
func (t *Terminal) Code(userCode, url string, seconds uint32, replaces, word string) {
	spaced := strings.Join(strings.Split(userCode, ""), " ")
	t.Say("")
	t.Say("  To link this machine, open")
	t.Say("")
	t.Say("      %s", url)
	t.Say("")
	t.Say("  and check the code:")
	t.Say("")
	t.Say("      %s", t.Bold(spaced))
	t.Say("      (%s)", userCode)
	t.Say("")
	if word != "" {
		t.Say("  The page asks for this sign-in word: %s", word)
		t.Say("")
	}
	t.Say("  %s", Instruction)
	t.Say("  %s", Notice(seconds))
	if replaces != "" {
		t.Say("  Approving replaces the link to %s.", replaces)
	}
	t.Say("")
}

// Browser says what became of opening the page.
func (t *Terminal) Browser(opened bool, reason string) {
	switch {
	case opened:
		t.Remark("  Opened the page in your browser.")
	case reason == "disabled":
		t.Remark("  The browser is not opened (SERVICE_NO_AUTO_OPEN=1): open the URL yourself.")
	case reason == "refused":
		t.Remark("  The URL is not one that may be opened: check it before you use it.")
	default:
		t.Remark("  The browser could not be opened: open the URL yourself.")
	}
}

// Linked says that the machine is linked.
func (t *Terminal) Linked(accountID, tier, file string) {
	t.Say("Linked to account %s (%s).", accountID, tier)
	t.Say("The token lies in %s, readable by you alone.", file)
}

// SpentHint is added when an approval was given but its answer never arrived.
const SpentHint = "If you approved it, that approval was used up and its token is revoked by itself: run `servicectl login` again."

// Countdown shows the time that is left until stop is called: moving on a terminal, one plain line otherwise.
func (t *Terminal) Countdown(total time.Duration) (stop func()) {
	if !t.Moves {
		return func() {}
	}
	end := time.Now().Add(total)
	quit := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			left := max(0, time.Until(end).Round(time.Second))
			fmt.Fprintf(t.Out, "\r  Waiting for approval, %d:%02d left (Ctrl-C cancels) ", int(left.Minutes()), int(left.Seconds())%60)
			select {
			case <-quit:
				fmt.Fprint(t.Out, "\r\x1b[K")
				return
			case <-tick.C:
			}
		}
	})
	return sync.OnceFunc(func() { close(quit); done.Wait() })
}
