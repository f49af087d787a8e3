package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
)

// cluster is how the API server is reached.
type cluster struct {
	dynamic dynamic.Interface
	mapping func(schema.GroupKind) (*meta.RESTMapping, error)
	// namespace that is shown; empty for all.
	namespace string
	clock     clock.Clock
}

// list is what is listed and watched, and what is kept of it.
type list struct {
	kind      schema.GroupKind
	namespace string
	labels    string
	fields    string
	// row returns what a page gets of an object; nil for nothing.
	row func(o *unstructured.Unstructured) any
	// gone is called when an object was deleted; nil for nothing.
	gone func()
	into *table
}

const (
	pageSize = 500
	// deniedRetry is how long the next try waits where the user lacks the rights, or the cluster the kind.
	deniedRetry = 30 * time.Second
	maxRetry    = 30 * time.Second
)

// follow keeps a table as the objects of a list are, until the context is done.
func (c *cluster) follow(ctx context.Context, l list) {
	for retry := time.Second; ctx.Err() == nil; retry = min(2*retry, maxRetry) {
		began := c.clock.Now()
		err := c.once(ctx, l)
		if ctx.Err() != nil {
			return
		}
		note, wait := explainFailure(l, err)
		switch {
		case wait > 0:
			retry = wait
		case c.clock.Since(began) > time.Minute || apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			retry = time.Second
		}
		l.into.report(false, note)
		select {
		case <-ctx.Done():
		case <-c.clock.After(retry):
		}
	}
}

// explainFailure returns what the page says about a failure, and how long the next try waits where that is known.
func explainFailure(l list, err error) (note string, wait time.Duration) {
	where := "all namespaces"
	if l.namespace != "" {
		where = "namespace " + l.namespace
	}
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Sprintf("The cluster does not serve %s.", l.kind.Kind), deniedRetry
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("You may not list and watch %s in %s.", l.kind.Kind, where), deniedRetry
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return "", 0
	case err == nil:
		return "", 0
	}
	return fmt.Sprintf("%s cannot be read, and is tried again: %v", l.kind.Kind, err), 0
}

// once lists and watches until the watch fails.
func (c *cluster) once(ctx context.Context, l list) error {
	mapping, err := c.mapping(l.kind)
	if err != nil {
		return err
	}
	var resource dynamic.ResourceInterface = c.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resource = c.dynamic.Resource(mapping.Resource).Namespace(l.namespace)
	}
	version, err := l.load(ctx, resource)
	if err != nil {
		return err
	}
	l.into.report(true, "")
	for ctx.Err() == nil {
		began := c.clock.Now()
		if version, err = l.watch(ctx, resource, version); err != nil {
			return err
		}
		if c.clock.Since(began) > time.Second {
			continue
		}
		select { // a server that ends watches at once is not asked again at once
		case <-ctx.Done():
		case <-c.clock.After(time.Second):
		}
	}
	return nil
}

// load reads all objects page by page, and keeps their rows alone.
func (l list) load(ctx context.Context, resource dynamic.ResourceInterface) (version string, err error) {
	options := metav1.ListOptions{LabelSelector: l.labels, FieldSelector: l.fields, Limit: pageSize}
	keys := map[string]bool{}
	for {
		page, err := resource.List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			if key := l.put(&page.Items[i]); key != "" {
				keys[key] = true
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			l.into.keep(keys)
			return page.GetResourceVersion(), nil
		}
	}
}

// put keeps the row of an object, and returns its key: empty where the list keeps nothing of it.
func (l list) put(o *unstructured.Unstructured) (key string) {
	key = keyOf(o)
	row := l.row(o)
	if row == nil {
		l.into.remove(key)
		return ""
	}
	data, err := json.Marshal(row)
	if err != nil {
		return ""
	}
	l.into.set(key, data)
	return key
}

// keyOf is the namespace and the name of an object.
func keyOf(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// watch keeps rows until the server ends the watch, and returns the version to go on with.
func (l list) watch(ctx context.Context, resource dynamic.ResourceInterface, version string) (string, error) {
	seconds := int64(300)
	watcher, err := resource.Watch(ctx, metav1.ListOptions{
		LabelSelector: l.labels, FieldSelector: l.fields, ResourceVersion: version, AllowWatchBookmarks: true,
		TimeoutSeconds: &seconds,
	})
	if err != nil {
		return version, err
	}
	defer watcher.Stop()
	for e := range watcher.ResultChan() {
		if e.Type == watch.Error {
			return version, apierrors.FromObject(e.Object)
		}
		o, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		version = o.GetResourceVersion()
		switch e.Type {
		case watch.Added, watch.Modified:
			l.put(o)
		case watch.Deleted:
			l.into.remove(keyOf(o))
			if l.gone != nil {
				l.gone()
			}
		}
	}
	return version, nil
}
