package process

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/examples/kruise-daemon/options"
)

// lookAgain is the pause between two looks for a runtime.
const lookAgain = time.Second

// detect waits for a container runtime: after a boot one may come later than its first containers.
func detect(ctx context.Context, o options.Runtime) (*cri.Runtimes, error) {
	logger := log.FromContext(ctx)
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for begin, said := time.Now(), ""; ; {
		found, err := cri.Detect(ctx, cri.Search{Root: o.Directory, Socket: o.Socket}, cri.Options{})
		if err == nil {
			for _, r := range found.Found {
				logger.Info("Found container runtime", "runtime", r.Name(), "endpoint", r.Endpoint())
			}
			for _, s := range found.Skipped {
				logger.Info("Skipped container runtime", "endpoint", s.Endpoint, "reason", s.Reason.Error())
			}
			return found, nil
		}
		if time.Since(begin)+lookAgain > o.Wait {
			return nil, err
		}
		if err.Error() != said {
			said = err.Error()
			logger.Info("Waiting for a container runtime", "reason", said)
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-tick.C:
		}
	}
}
