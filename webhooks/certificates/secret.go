package certificates

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// races is how often another replica may write before us in one go.
const races = 5

// load reads the Secret, and writes it first where it must change. Of replicas that try at once one succeeds, and the
// others take what it wrote.
func (k *Keeper) load(ctx context.Context) (*material, error) {
	for range races {
		m, err := k.loadOnce(ctx)
		if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
			continue
		}
		return m, err
	}
	return nil, errors.New("write Secret: others always write before")
}

func (k *Keeper) loadOnce(ctx context.Context) (*material, error) {
	object := &corev1.Secret{}
	object.Namespace, object.Name = k.service.Namespace, k.options.Secret
	err := k.client.Get(ctx, client.ObjectKeyFromObject(object), object)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, fmt.Errorf("read Secret: %w", err)
	}
	if k.options.External {
		if missing {
			return nil, fmt.Errorf("wait for the program that fills the Secret %s", client.ObjectKeyFromObject(object))
		}
		return parse(object.Data, true)
	}
	in := k.input()
	in.data = object.Data
	data, reason, err := plan(in)
	if err != nil {
		return nil, err
	}
	if reason == "" {
		return parse(data, false)
	}
	object.Data = data
	if missing {
		err = k.client.Create(ctx, object)
	} else {
		err = k.client.Update(ctx, object)
	}
	if err != nil {
		return nil, fmt.Errorf("write Secret: %w", err)
	}
	log.FromContext(ctx).Info("Wrote certificate", "secret", client.ObjectKeyFromObject(object), "reason", reason)
	return parse(data, false)
}
