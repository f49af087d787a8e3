package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pulls is scenario D: what a change costs among 200 pull jobs. No daemon runs, so that a job waits for the nodes of
// its first batch.
func pulls(ctx context.Context, e *env) error {
	n := e.pick(20, 200)
	r, err := e.settled(ctx)
	if err != nil {
		return err
	}
	nodes := e.cluster.Nodes
	e.report.table(fmt.Sprintf("%d pull jobs on %d nodes", n, len(nodes)), "change", "reconciles", "writes")
	var texts []string
	for i := range n {
		texts = append(texts, pullJob(i))
	}
	node := nodes[0]
	for _, step := range []struct {
		name   string
		change func() error
	}{
		{"all jobs are created", func() error { return e.apply(ctx, texts) }},
		{"one more job is created", func() error { return e.apply(ctx, []string{pullJob(n)}) }},
		{"a node reports one image of one job as pulled", func() error { return e.pulled(ctx) }},
		{"a node gets another label", func() error {
			return e.kubectl(ctx, "", "label", "node", node, "rack=7")
		}},
		{"a node sends a heartbeat", func() error {
			return e.kubectl(ctx, "", "patch", "node", node, "--subresource=status", "--type=merge", "-p",
				`{"status":{"images":[{"names":["registry.example.com/shop/other:1"],"sizeBytes":1}]}}`)
		}},
	} {
		ph, err := measure(ctx, r, phase{name: step.name, pods: 1}, func() error {
			if err := step.change(); err != nil {
				return err
			}
			return r.idle(ctx, 5*time.Second)
		})
		if err != nil {
			return err
		}
		e.report.row(step.name, fmt.Sprintf("%.0f", ph.used.passes), fmt.Sprintf("%.0f", ph.used.writes))
	}
	return nil
}

func pullJob(i int) string {
	return fmt.Sprintf(`{apiVersion: apps.kruise.io/v1beta1, kind: ImagePullJob, metadata: {name: pull-%d, namespace: %s},
spec: {image: "registry.example.com/shop/image-%[1]d:1", parallelism: 5,
pullPolicy: {timeoutSeconds: 3600, backoffLimit: 3}, completionPolicy: {type: Always}}}`, i, namespace)
}

// pulled reports an image of a NodeImage as pulled, as the daemon of its node does.
func (e *env) pulled(ctx context.Context) error {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(kruiseAPI)
	list.SetKind("NodeImageList")
	if err := e.client.List(ctx, list); err != nil {
		return fmt.Errorf("list NodeImages: %w", err)
	}
	for i := range list.Items {
		images, _, _ := unstructured.NestedMap(list.Items[i].Object, "spec", "images")
		for name := range images {
			status := fmt.Appendf(nil, `{"status":{"desired":1,"succeeded":1,"failed":0,"pulling":0,"imageStatuses":`+
				`{%q:{"tags":[{"tag":"1","phase":"Succeeded","progress":100,"version":1}]}}}}`, name)
			if err := e.client.Status().Patch(ctx, &list.Items[i], client.RawPatch(types.MergePatchType, status)); err != nil {
				return fmt.Errorf("patch NodeImage: %w", err)
			}
			return nil
		}
	}
	return fmt.Errorf("none of %d NodeImages has an image to pull", len(list.Items))
}
