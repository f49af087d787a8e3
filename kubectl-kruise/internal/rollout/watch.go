package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/kubectl/pkg/util/podutils"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/pods"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/revision"
)

// errDeleted ends a watch of an object that is deleted.
var errDeleted = errors.New("object has been deleted")

// watchStatus prints the status of a rollout until it is done.
func watchStatus(c target.Command, objects []target.Object, _ []string) error {
	if len(objects) != 1 {
		return fmt.Errorf("rollout status is only supported on individual resources and resource collections - %d resources "+
			"were found", len(objects))
	}
	o := objects[0]
	if err := checkRevision(c, o.Unstructured); err != nil {
		return err
	}
	timeout, err := c.Flags().GetDuration("timeout")
	if err != nil {
		return err
	}
	last := ""
	newest := o.Unstructured
	show := func(o *unstructured.Unstructured) (bool, error) {
		newest = o
		line, done, err := Status(o)
		if err != nil {
			return false, err
		}
		if line != last {
			fmt.Fprint(c.Out, line)
			last = line
		}
		return done || !c.Is("watch"), nil
	}
	if err := Watch(c, o, timeout, show); err != nil {
		return err
	}
	if c.Is("detail") {
		return printDetail(c, target.Object{Unstructured: newest, Info: o.Info})
	}
	return nil
}

// checkRevision returns an error where --revision names another revision than the newest.
func checkRevision(c target.Command, o *unstructured.Unstructured) error {
	want := c.Text("revision")
	if want == "0" {
		return nil
	}
	newest, _, _ := unstructured.NestedString(o.Object, "status", "updateRevision")
	if isDeploymentInPlace(o) {
		newest = o.GetAnnotations()[revisionKey]
	}
	if !strings.HasSuffix(newest, "-"+want) && newest != want {
		return fmt.Errorf("desired revision (%s) is different from the running revision (%s)", want, newest)
	}
	return nil
}

// Watch calls a function with an object each time that it changes, until the function is done. A timeout of 0 is none.
func Watch(
	c target.Command, o target.Object, timeout time.Duration, show func(*unstructured.Unstructured) (bool, error),
) error {
	if done, err := show(o.Unstructured); done || err != nil {
		return err
	}
	dynamic, err := c.Factory.DynamicClient()
	if err != nil {
		return err
	}
	ctx, cancel := watchtools.ContextWithOptionalTimeout(c.Context(), timeout)
	defer cancel()
	client := dynamic.Resource(o.Info.Mapping.Resource).Namespace(o.GetNamespace())
	byName := fields.OneTermEqualSelector("metadata.name", o.GetName()).String()
	objects := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = byName
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = byName
			return client.Watch(ctx, options)
		},
	}
	_, err = watchtools.UntilWithSync(ctx, objects, &unstructured.Unstructured{}, nil, func(e watch.Event) (bool, error) {
		if e.Type == watch.Deleted {
			return false, errDeleted
		}
		now, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			return false, fmt.Errorf("watch %s: %v", o.GetName(), e.Object)
		}
		return show(now)
	})
	return err
}

// printDetail lists the updated pods of a CloneSet.
func printDetail(c target.Command, o target.Object) error {
	if !kinds.Is(o.Unstructured, kinds.CloneSet) {
		return nil
	}
	set, err := kinds.ReadCloneSet(o.Unstructured)
	if err != nil {
		return err
	}
	own, err := pods.Of(c, o)
	if err != nil {
		return err
	}
	var ready, others []string
	for _, pod := range own {
		switch {
		case !revision.Match(pod.Labels["controller-revision-hash"], set.Status.UpdateRevision):
		case podutils.IsPodReady(pod):
			ready = append(ready, pod.Name)
		default:
			others = append(others, pod.Name)
		}
	}
	fmt.Fprintf(c.Out, "%s\nUpdated ready pods: %s\nUpdated not ready pods: %s\n",
		o.GetName(), strings.Join(ready, " "), strings.Join(others, " "))
	return nil
}
