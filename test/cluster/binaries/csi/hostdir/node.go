package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// nodeServer mounts volumes into pods, and expands mounted volumes.
type nodeServer struct {
	csi.UnimplementedNodeServer

	name    string
	volumes store
}

func (s *nodeServer) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: s.name}, nil
}

func (*nodeServer) NodeGetCapabilities(
	context.Context, *csi.NodeGetCapabilitiesRequest,
) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{{
		Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{
			Type: csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		}},
	}}}, nil
}

func (s *nodeServer) NodePublishVolume(
	_ context.Context, request *csi.NodePublishVolumeRequest,
) (*csi.NodePublishVolumeResponse, error) {
	id, target := request.GetVolumeId(), request.GetTargetPath()
	size, err := s.volumes.read(id)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(target, 0o750); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if _, err := os.Stat(s.volumes.grown(id)); errors.Is(err, fs.ErrNotExist) { // the file system of a new volume fills it
		if err := write(s.volumes.grown(id), size); err != nil {
			return nil, err
		}
	}
	if same(s.volumes.data(id), target) {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	err = syscall.Mount(s.volumes.data(id), target, "", syscall.MS_BIND, "")
	if err == nil && request.GetReadonly() {
		err = syscall.Mount("", target, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, "")
	}
	if err != nil {
		return nil, status.Errorf(codes.Internal, "mount %s: %v", id, err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (*nodeServer) NodeUnpublishVolume(
	_ context.Context, request *csi.NodeUnpublishVolumeRequest,
) (*csi.NodeUnpublishVolumeResponse, error) {
	target := request.GetTargetPath()
	// EINVAL is for what is not mounted: a repeated call, or a node that has restarted since.
	if err := syscall.Unmount(target, 0); err != nil && !errors.Is(err, syscall.EINVAL) &&
		!errors.Is(err, fs.ErrNotExist) {
		return nil, status.Errorf(codes.Internal, "unmount %s: %v", target, err)
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, status.Errorf(codes.Internal, "unmount %s: %v", target, err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func (s *nodeServer) NodeExpandVolume(
	_ context.Context, request *csi.NodeExpandVolumeRequest,
) (*csi.NodeExpandVolumeResponse, error) {
	id := request.GetVolumeId()
	size, err := s.volumes.read(id)
	if err != nil {
		return nil, err
	}
	if !same(s.volumes.data(id), request.GetVolumePath()) {
		return nil, status.Errorf(codes.NotFound, "volume %s is not mounted at %s", id, request.GetVolumePath())
	}
	if wanted := request.GetCapacityRange().GetRequiredBytes(); wanted > size {
		return nil, status.Errorf(codes.OutOfRange, "volume %s has %d bytes, not %d", id, size, wanted)
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: size}, write(s.volumes.grown(id), size)
}

// same reports whether two paths are one directory, which a mount makes them.
func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
