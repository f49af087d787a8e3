package imagepull

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/imagepull"
)

// The results of attempts, as the metrics call them.
const (
	resultPulled      = "pulled"
	resultPresent     = "present"
	resultStopped     = "stopped"
	resultTimeout     = "timeout"
	resultUnavailable = "unavailable"
	resultRefused     = "refused"
	resultNotFound    = "not_found"
	resultNoRoom      = "no_room"
	resultFailed      = "failed"
)

// maxMessage bounds what a status keeps of an error, in bytes.
const maxMessage = 1024

// outcome is how an attempt ended.
type outcome struct {
	attempt *attempt
	result  string
	imageID string
	err     error
	at      time.Time
}

// try makes the attempt. It lasts until the context ends at most.
func (r *Reconciler) try(ctx context.Context, a *attempt) outcome {
	began := r.api.Now()
	o := outcome{attempt: a}
	o.imageID, o.result, o.err = r.obtain(ctx, a)
	if o.err != nil {
		o.result = resultOf(ctx, o.err)
	}
	if o.result == resultTimeout {
		o.err = fmt.Errorf("pull image %q: no result within %s", a.pull.Reference.String(), a.timeout)
	}
	o.at = r.api.Now()
	r.metrics.attempted(o, o.at.Sub(began))
	return o
}

// obtain finds or pulls an image. A panic fails the attempt, and ends no other work of the daemon.
func (r *Reconciler) obtain(ctx context.Context, a *attempt) (id, result string, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			log.FromContext(ctx).Error(fmt.Errorf("panic: %v", fault), "Recovered panic of a pull",
				"image", a.pull.Reference.String(), "stack", string(debug.Stack()))
			id, err = "", fmt.Errorf("pull image %q: panic: %v", a.pull.Reference.String(), fault)
		}
	}()
	if a.ifAbsent {
		if id, err = r.find(ctx, a.pull.Reference); id != "" {
			return id, resultPresent, nil
		}
		if err != nil {
			return "", "", err
		}
	}
	id, err = r.pullWithin(ctx, a)
	return id, resultPulled, err
}

func resultOf(ctx context.Context, err error) string {
	switch {
	case errors.Is(err, errNoRoom):
		return resultNoRoom
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return resultTimeout
	case ctx.Err() != nil:
		return resultStopped
	case errors.Is(err, cri.ErrUnavailable):
		return resultUnavailable
	case errors.Is(err, cri.ErrCredentials):
		return resultRefused
	case errors.Is(err, cri.ErrNotFound):
		return resultNotFound
	}
	return resultFailed
}

// find gives the ID of an image that the node has, or nothing. Runtimes also take a reference for the beginning of an
// ID, or look for it in several registries; so what they find must say that it is the one.
func (r *Reconciler) find(ctx context.Context, ref imagepull.Reference) (string, error) {
	i, err := r.images.Image(ctx, ref.String())
	switch {
	case err == nil && ref.Among(slices.Concat(i.Tags, i.Digests)...):
		return idOf(i.ID), nil
	case err == nil, errors.Is(err, cri.ErrNotFound):
		return "", nil
	case ctx.Err() != nil, errors.Is(err, cri.ErrUnavailable):
		return "", err
	}
	log.FromContext(ctx).Error(err, "Not known whether the image is there: pulling it", "image", ref.String())
	return "", nil
}

// pull tries all credentials there are, in their order, and none only where there are none.
func (r *Reconciler) pull(ctx context.Context, a *attempt) (string, error) {
	credentials, malformed := r.credentials(ctx, a.pull)
	if len(credentials) == 0 {
		id, err := r.ask(ctx, a, imagepull.Credential{})
		if err != nil && ctx.Err() == nil && !errors.Is(err, cri.ErrUnavailable) {
			err = errors.Join(err, malformed)
		}
		return id, err
	}
	var failures []error
	for _, c := range credentials {
		id, err := r.ask(ctx, a, c)
		if err == nil || ctx.Err() != nil || errors.Is(err, cri.ErrUnavailable) {
			return id, err
		}
		failures = append(failures, err)
	}
	return "", errors.Join(append(failures, malformed)...)
}

func (r *Reconciler) ask(ctx context.Context, a *attempt, c imagepull.Credential) (string, error) {
	id, err := r.images.Pull(ctx, a.pull.Reference.String(), cri.Credentials{
		Username: c.Username, Password: c.Password, IdentityToken: c.IdentityToken, RegistryToken: c.RegistryToken,
	}, cri.SandboxConfig{Labels: a.pull.Sandbox.Labels, Annotations: a.pull.Sandbox.Annotations})
	if errors.Is(err, cri.ErrCredentials) {
		r.distrust(a.pull)
	}
	return idOf(id), err
}

// idOf an image, of which some runtimes also say the name.
func idOf(id string) string { return id[strings.LastIndex(id, "@")+1:] }

// messageOf an error is one line, in which nothing stands twice.
func messageOf(err error) string {
	var lines []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return cut(strings.Join(lines, "; "))
}

// cut keeps a message short, and its letters whole.
func cut(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	end := maxMessage
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end]
}
