package account

import (
	"context"
	"fmt"
	"time"
)

// Allowances for wrong passwords. They are counted per account, in the store, whatever address the guesses come from.
//
// A stranger can only use up the allowance of browsers that never used the account: a browser that has signed in to
// the account before has its own, and mailed links, passkeys and providers need no password.
const (
	maxGuesses      = 10
	guessEvery      = 6 * time.Minute // restores one guess: 240 a day against passwords of 10 characters or more
	knownGuessEvery = time.Minute     // the same, for a browser that has signed in before
	// hexadecimal digits of a hash, so that invented addresses create at most a million rows
	guessBucket = 5
)

// TooManyGuessesError is returned while no further password is checked, for addresses without an account too.
type TooManyGuessesError struct{ Wait time.Duration }

// Error includes the wait, which is not secret.
func (e *TooManyGuessesError) Error() string {
	return fmt.Sprintf("too many wrong passwords, the next is checked in %s", e.Wait.Round(time.Second))
}

// allowance is a counter of guesses and the interval after which one is restored.
type allowance struct {
	key   string
	every time.Duration
}

// signInAllowance returns the allowance of an address, whether it has an account or not, or of a browser that has
// signed in with it before.
func (s *Service) signInAllowance(email, browser string) allowance {
	if browser != "" {
		return allowance{"browser:" + s.hash.Hash("guess", email+"\x00"+browser), knownGuessEvery}
	}
	return allowance{"address:" + s.hash.Hash("guess", email)[:guessBucket], guessEvery}
}

// ownAllowance returns the allowance of forms that ask a signed-in person for the password again.
func (s *Service) ownAllowance(accountID string) allowance {
	return allowance{"account:" + s.hash.Hash("guess", accountID), guessEvery}
}

// guess runs check, which checks a password, and counts the guess if it was wrong. The guess is taken first, so that
// concurrent calls cannot share the last one.
func (s *Service) guess(ctx context.Context, of allowance, check func() error) error {
	wait, err := s.store.TakeGuess(ctx, of.key, s.now(), of.every, maxGuesses)
	if err != nil {
		return err
	}
	if wait > 0 {
		return &TooManyGuessesError{Wait: wait}
	}
	if err := check(); err != nil {
		return err
	}
	return s.store.ReturnGuess(ctx, of.key, s.now(), of.every)
}

// checkOwn checks the password of a signed-in person. It returns ErrBadCredentials or a *TooManyGuessesError.
func (s *Service) checkOwn(ctx context.Context, a Account, password string) error {
	return s.guess(ctx, s.ownAllowance(a.ID), func() error { return a.check(ctx, password) })
}
