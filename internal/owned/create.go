package owned

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/write"
)

// Create sends the creation of an object of an owner, whose name follows from what the object is for. Where the name is
// taken, the API server is asked by which object: an earlier process may have created the object, and the cache may not
// show it. Create returns the object as it is stored, and whether it existed before; nil for one that existed and is
// gone.
func Create( //nolint:ireturn,revive // as binding.Send; a context besides four arguments
	ctx context.Context, api *binding.Binding, owner client.Object, creation *write.Write, ledger driver.Recorder,
) (have write.Object, existed bool, err error) {
	key := client.ObjectKeyFromObject(owner)
	have, err = api.Send(ctx, key, creation, ledger)
	if !apierrors.IsAlreadyExists(err) {
		return have, false, err
	}
	taken := err
	have, err = api.Send(ctx, key, &write.Write{Verb: write.Get, Object: creation.Object})
	switch {
	case apierrors.IsNotFound(err):
		return nil, true, nil
	case err != nil:
		return nil, false, fmt.Errorf("read the object that has the name: %w", err)
	case !Controls(owner, have):
		return nil, false, fmt.Errorf("the name is taken: %w", taken)
	case have.GetDeletionTimestamp() == nil:
		ledger.Record(key, creation, have, nil)
	}
	return have, true, nil
}
