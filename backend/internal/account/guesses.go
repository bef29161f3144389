package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Limits on wrong passwords. The store counts them per account, for guesses from all addresses.
//
// A stranger can use up only the allowance of browsers that have never signed in to the account. A browser that has
// signed in before has a separate allowance, and mailed links, passkeys and providers need no password.
const (
	maxGuesses      = 10
	guessEvery      = 6 * time.Minute // restores one guess: 240 a day against passwords of 10 characters or more
	knownGuessEvery = time.Minute     // same, for a browser that has signed in before
	// guessBucket is the number of hexadecimal digits kept of a hash, so that invented addresses create at most a
	// million rows.
	guessBucket = 5
)

// TooManyGuessesError is returned while the service rejects passwords unchecked. It is also returned for addresses
// without an account.
type TooManyGuessesError struct{ Wait time.Duration }

// Error returns a message that includes the wait, which is not a secret.
func (e *TooManyGuessesError) Error() string {
	return fmt.Sprintf("too many wrong passwords, try again in %s", e.Wait.Round(time.Second))
}

// allowance is a counter of guesses and the interval after which one is restored.
type allowance struct {
	key   string
	every time.Duration
}

// signInAllowance returns the allowance of a browser that has signed in with the address before. For any other browser
// it returns the allowance of the address, which need not have an account.
func (s *Service) signInAllowance(email, browser string) allowance {
	if browser != "" {
		return allowance{"browser:" + s.hash.Hash("guess", email+"\x00"+browser), knownGuessEvery}
	}
	return allowance{"address:" + s.hash.Hash("guess", email)[:guessBucket], guessEvery}
}

// ownAllowance returns the allowance for forms that ask a signed-in user for the password again.
func (s *Service) ownAllowance(accountID string) allowance {
	return allowance{"account:" + s.hash.Hash("guess", accountID), guessEvery}
}

// guess runs check, which checks a password. It spends one guess first, so that concurrent calls cannot share the
// last one, and restores it if the password was correct or not checked.
func (s *Service) guess(ctx context.Context, of allowance, check func() error) error {
	wait, err := s.store.TakeGuess(ctx, of.key, s.now(), of.every, maxGuesses)
	if err != nil {
		return err
	}
	if wait > 0 {
		return &TooManyGuessesError{Wait: wait}
	}
	err = check()
	if err != nil && !errors.Is(err, ErrBusy) {
		return err
	}
	return cmp.Or(s.store.ReturnGuess(ctx, of.key, s.now(), of.every), err)
}

// checkOwn checks the password of a signed-in user. It returns ErrBadCredentials or a *TooManyGuessesError.
func (s *Service) checkOwn(ctx context.Context, a Account, password string) error {
	return s.guess(ctx, s.ownAllowance(a.ID), func() error { return a.check(asKnown(ctx, a.ID), password) })
}
