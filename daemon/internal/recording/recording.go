// Package recording makes recorders whose events name a component on a node. Recorders of controller-runtime do not set
// the node.
package recording

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kruisekit/kruisekit/daemon/internal/background"
)

// For makes a recorder whose events are those of a component on a node. It works while the manager does.
func For(mgr manager.Manager, component, node string) (record.EventRecorder, error) {
	core, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client for events: %w", err)
	}
	b := record.NewBroadcaster()
	sending := background.Tasks{func(ctx context.Context) {
		to := b.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: core.Events("")})
		<-ctx.Done()
		to.Stop()
		b.Shutdown()
	}}
	if err := mgr.Add(sending); err != nil {
		return nil, fmt.Errorf("add a recorder of events: %w", err)
	}
	return b.NewRecorder(mgr.GetScheme(), corev1.EventSource{Component: component, Host: node}), nil
}
