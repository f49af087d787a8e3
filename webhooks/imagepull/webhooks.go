package imagepull

import (
	"errors"
	"maps"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
	"github.com/kruisekit/kruisekit/write"
)

// Where API servers expect the defaults and the rules: a prefix, and the kind in small letters.
const (
	mutatePath   = "/mutate-apps-kruise-io-"
	validatePath = "/validate-apps-kruise-io-"
)

// Options of the webhooks. The zero value behaves as the reference does by default.
type Options struct {
	// Jobs lets ImagePullJobs and ImageListPullJobs in.
	Jobs bool
	// NoDaemon rejects every object, because no daemon would pull.
	NoDaemon bool
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}

// New returns the webhooks of ImagePullJobs, ImageListPullJobs and NodeImages.
func New(o Options) (kinds.Webhooks, error) {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock of the options, where none is given
	}
	job, ofJob := jobs(o)
	list, ofList := lists(o)
	node, ofNode := nodes(o)
	maps.Copy(job, list)
	maps.Copy(job, node)
	return job, errors.Join(ofJob, ofList, ofNode)
}

func jobs(o Options) (kinds.Webhooks, error) {
	return kinds.New(nil, kinds.Row[*appsv1beta1.ImagePullJob]{
		Kind: appsv1beta1.GroupVersion.WithKind("ImagePullJob"),
		Hub:  &appsv1beta1.ImagePullJob{}, Old: &appsv1alpha1.ImagePullJob{},
		MutatePath: mutatePath + "imagepulljob", ValidatePath: validatePath + "imagepulljob",
		Closed: o.closed(true), Code: http.StatusBadRequest,
		Validate: validation.ImagePullJob, Arrange: addFinalizer,
		Fixed: func(c kinds.Change[*appsv1beta1.ImagePullJob]) field.ErrorList {
			return validation.ImagePullJobUpdate(c.Now, c.Before)
		},
	}, kinds.Options{})
}

func lists(o Options) (kinds.Webhooks, error) {
	return kinds.New(nil, kinds.Row[*appsv1beta1.ImageListPullJob]{
		Kind: appsv1beta1.GroupVersion.WithKind("ImageListPullJob"),
		Hub:  &appsv1beta1.ImageListPullJob{}, Old: &appsv1alpha1.ImageListPullJob{},
		MutatePath: mutatePath + "imagelistpulljob", ValidatePath: validatePath + "imagelistpulljob",
		Closed: o.closed(true), Code: http.StatusBadRequest,
		Validate: validation.ImageListPullJob,
	}, kinds.Options{})
}

func nodes(o Options) (kinds.Webhooks, error) {
	return kinds.New(nil, kinds.Row[*appsv1beta1.NodeImage]{
		Kind: appsv1beta1.GroupVersion.WithKind("NodeImage"),
		Hub:  &appsv1beta1.NodeImage{}, Old: &appsv1alpha1.NodeImage{},
		MutatePath: mutatePath + "nodeimage", ValidatePath: validatePath + "nodeimage",
		Closed: o.closed(false), Code: http.StatusBadRequest,
		Validate: validation.NodeImage,
		Arrange:  func(content map[string]any, _ kinds.Request) []write.Op { return arrangeTags(content, o.Now()) },
	}, kinds.Options{})
}

// closed returns why every object is rejected, whatever the object; empty if it is not.
func (o Options) closed(ofJobs bool) string {
	switch {
	case o.NoDaemon:
		return "no image is pulled ahead: feature gate KruiseDaemon is off"
	case ofJobs && !o.Jobs:
		return "no image is pulled for a job: feature gate ImagePullJobGate is off"
	}
	return ""
}
