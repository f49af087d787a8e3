package cri

import (
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var (
	// ErrNotFound says that the runtime does not have the container, sandbox or image; of a pull, that the registry
	// does not.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable says that the runtime was not there, went away during the call, or did not answer in time. Whether
	// a call that was under way has done its work is not known. Trying again later is right.
	ErrUnavailable = errors.New("container runtime unavailable")
	// ErrCredentials says that the registry wants other credentials for a pull, or some. CRI has no code for it. The
	// package recognises the error texts of containerd, CRI-O and Docker, which covers most refusals and not all. Some
	// registries give the same answer for an image that does not exist.
	ErrCredentials = errors.New("registry refused the credentials")
	// ErrExecTimeout says that a command ran longer than it may, and was killed by the runtime.
	ErrExecTimeout = errors.New("command timed out")
	// ErrNoSocket says that no runtime was looked for, because nothing is where one listens.
	ErrNoSocket = errors.New("not found container runtime sock")
)

// A failure reads "verb noun: reason", where the reason is what the runtime says, and is what the caller can act on.
type failure struct {
	what string
	is   error // one of the package's errors, or nil
	text string
}

func (f *failure) Error() string {
	switch {
	case f.is == nil:
		return f.what + ": " + f.text
	case f.text == "":
		return f.what + ": " + f.is.Error()
	}
	return f.what + ": " + f.is.Error() + ": " + f.text
}

func (f *failure) Unwrap() error { return f.is }

// An answer is an error as it came from gRPC.
type answer struct {
	err error
	// sent says that the runtime itself has answered. Otherwise the connection has failed.
	sent bool
}

// judge returns the error of the package that an answer means; nil for none.
func (o operation) judge(a answer) error {
	code, text := status.Code(a.err), status.Convert(a.err).Message()
	if o.registry {
		if err := judgePull(code, text); err != nil {
			return err
		}
		// What is left of these codes concerns the registry when the runtime sends it.
		if a.sent && (code == codes.Unavailable || code == codes.Canceled) && !starting(text) {
			return nil
		}
	}
	switch {
	case code == codes.Unimplemented:
		return errors.ErrUnsupported
	case code == codes.NotFound:
		return ErrNotFound
	case code == codes.DeadlineExceeded && o.command:
		return ErrExecTimeout
	case code == codes.Unavailable, code == codes.Canceled:
		// A runtime that stops cancels its calls. The end of the caller's context is no answer, see explain.
		return ErrUnavailable
	case starting(text):
		return ErrUnavailable
	// cri-dockerd passes Docker's error on without a code.
	case !o.registry && strings.Contains(text, "No such container: "):
		return ErrNotFound
	}
	return nil
}

// starting reports whether containerd answers that it has only just started. Older releases answer so without a code.
func starting(text string) bool { return strings.Contains(text, "server is not initialized yet") }

func judgePull(code codes.Code, text string) error {
	if code == codes.Unauthenticated || code == codes.PermissionDenied {
		return ErrCredentials
	}
	text = strings.ToLower(text)
	for _, refusal := range refusals() {
		if strings.Contains(text, refusal) {
			return ErrCredentials
		}
	}
	return nil
}

// refusals are what runtimes say when a registry refuses, in lower case. Each has a blank, which
// neither the names of images nor the paths of URLs have that are in many of the texts.
func refusals() []string {
	return []string{
		"401 unauthorized", "403 forbidden", // containerd: the registry's or the token server's answer
		"authorization failed",        // containerd: after the token
		"no basic auth credentials",   // containerd, Docker
		"pull access denied",          // containerd, Docker
		"unauthorized: ",              // CRI-O, Docker: the registry's error code
		"denied: requested access to", // CRI-O, Docker: the same
		"authentication required",     // CRI-O, Docker
		"invalid username/password",   // CRI-O
		"incorrect username or password",
	}
}
