package stopping

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/daemon/internal/podhttp"
)

// mostBody of an answer is read, so that the server is not cut off while it writes.
const mostBody = 10 << 10

// hooks runs them.
type hooks struct {
	http *http.Client
}

func newHooks() hooks { return hooks{http: podhttp.Client()} }

// run runs the hook of an order. The error says no more than what everybody may see who sees the pod's events: neither
// output nor paths.
func (h hooks) run(ctx context.Context, o Order) error {
	switch hook := o.Kill.Hook; {
	case hook.Err != nil:
		return hook.Err
	case hook.HTTP != nil:
		return h.send(ctx, *hook.HTTP)
	case hook.Sleep != nil:
		pause(ctx, *hook.Sleep)
		return ctx.Err()
	default:
		// Without a limit of its own: the runtime would end the command, and not all of its children, where we just stop
		// waiting.
		out, err := o.Runtime.Exec(ctx, o.id(), cri.Command{Args: hook.Exec})
		if err == nil && out.ExitCode != 0 {
			err = fmt.Errorf("the command ended with exit code %d", out.ExitCode)
		}
		return err
	}
}

// send asks for the URL. Any answer will do, whatever its status, as with kubelets.
func (h hooks) send(ctx context.Context, get containerrestart.HTTPGet) error {
	request, err := podhttp.Request(ctx, get.URL, "kube-lifecycle", get.Headers)
	if err != nil {
		return errors.New("the URL cannot be asked for")
	}
	err = h.ask(request)
	if !errors.Is(err, http.ErrSchemeMismatch) {
		return err
	}
	request = request.Clone(ctx)
	request.URL.Scheme = "http"
	request.Header.Del("Authorization") // it was meant to travel encrypted
	return h.ask(request)
}

func (h hooks) ask(request *http.Request) error {
	response, err := h.http.Do(request) //nolint:gosec // kubelets send the same request for the users who create pods
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err // without the URL, whose query may be secret
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()                          //nolint:errcheck // nothing follows from it
	_, _ = io.CopyN(io.Discard, response.Body, mostBody) // it has answered, whatever it says
	return nil
}
