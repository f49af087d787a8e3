package stored_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
)

func TestNodeImage(t *testing.T) {
	was := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "node-1", ResourceVersion: "7"}}
	was.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"kept": {}}
	is := was.Status.DeepCopy()
	is.Desired, is.Succeeded = 2, 2
	is.ImageStatuses["nginx"] = v1beta1.ImageStatus{Tags: []v1beta1.ImageTagStatus{{
		Tag: "1", Phase: v1beta1.ImagePhaseSucceeded,
	}}}
	patch, err := stored.NodeImageStatus(was, is)
	if err != nil {
		t.Fatal(err)
	}
	got, err := patch.Data(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"resourceVersion":"7"},"status":{"desired":2,"failed":0,` +
		`"imageStatuses":{"nginx":{"tags":[{"phase":"Succeeded","tag":"1"}]}},"pulling":0,"succeeded":2,"waiting":0}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
