/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/*
 * The interface of /dev/rnicd_fr: fast registrations by the kernel in a
 * protection domain of a user-space process.
 *
 * The device gives a *control file*. RNICD_FR_TAKE makes a *domain file* for
 * one protection domain; all other requests are for domain files. Closing the
 * last descriptor of a domain file releases what was made on it. Both kinds
 * answer only to the process that opened the device (EPERM).
 *
 * Fields marked "out" are written by the module and ignored when read. All
 * other fields are checked; reserved fields must be 0 (EINVAL).
 */
#pragma once

#include <linux/ioctl.h>
#include <linux/types.h>

/* Changes when a program built for another version would be misunderstood. */
#define RNICD_FR_ABI 1

#define RNICD_FR_SLOTS 2		/* kernel registrations of a region */
#define RNICD_FR_OPS_MAX 64		/* operations of one RNICD_FR_SUBMIT */
#define RNICD_FR_REGION_PAGES_MAX 4096	/* pages of a region on any card */
#define RNICD_FR_MAPPING_PAGES_MAX 0x1000000

/*
 * Limits of a control file and all its domain files, from the parameters of
 * the module. Beyond one, a request fails with EDQUOT.
 */
struct rnicd_fr_info {
	__u32 abi;		/* out: RNICD_FR_ABI */
	__u32 page_size;	/* out: bytes of a page */
	__u32 domains_max;	/* out: domain files */
	__u32 regions_max;	/* out: regions */
	__u64 pages_max;	/* out: mapped pages, each mapping counts its own */
};

/*
 * Errors: ENODEV no such card; EBADF no such descriptor; ENOENT no such
 * domain, or one of another file or process; EBUSY already taken, or being
 * made or freed; EOPNOTSUPP the card has no fast registrations or is iWARP.
 */
struct rnicd_fr_take {
	__u32 device_index;	/* of the card: RDMA_NLDEV_ATTR_DEV_INDEX */
	__s32 uverbs_fd;	/* the caller's uverbs file, kept open */
	__u32 pd_id;		/* number of the domain: RDMA_NLDEV_ATTR_RES_PDN */
	__u32 pd_handle;	/* uverbs handle of the same domain */
	__u32 port;		/* port of the card, from 1 */
	__u32 gid_index;	/* own GID to connect with; 0 on InfiniBand */
	__s32 domain_fd;	/* out: the domain file, close-on-exec */
	__u32 region_pages_max;	/* out: pages that a region may have */
};

/*
 * Pins pages and maps them for the card. The pages count against
 * RLIMIT_MEMLOCK unless the caller has CAP_IPC_LOCK.
 * Errors: EFAULT a page is not there or not writable; ENOMEM.
 */
struct rnicd_fr_map {
	__u64 address;		/* first page in the caller, page aligned */
	__u64 length;		/* bytes, whole pages, at least one */
	__u32 mapping;		/* out: number of the mapping, from 1 */
	__u32 reserved;
};

/* EBUSY while a registration that is in force, or may be, has its pages. */
struct rnicd_fr_unmap {
	__u32 mapping;
	__u32 reserved;
};

struct rnicd_fr_create_region {
	__u32 pages;		/* from 1 to region_pages_max */
	__u32 region;		/* out: number of the region, from 1 */
	__u32 keys[RNICD_FR_SLOTS];	/* out: key of each slot, low byte 0 */
};

/* Ends its registrations, whether they are invalidated or not. */
struct rnicd_fr_destroy_region {
	__u32 region;
	__u32 reserved;
};

/* Neighbouring pages of one mapping. */
struct rnicd_fr_run {
	__u32 mapping;
	__u32 page;		/* first page, counted in the mapping */
	__u32 count;		/* at least 1 */
	__u32 reserved;
};

enum rnicd_fr_kind {
	RNICD_FR_REGISTER = 1,
	RNICD_FR_INVALIDATE = 2,
};

/* Rights of a registration; REMOTE_WRITE needs LOCAL_WRITE. */
#define RNICD_FR_LOCAL_WRITE 0x1
#define RNICD_FR_REMOTE_READ 0x2
#define RNICD_FR_REMOTE_WRITE 0x4

/*
 * One operation on a slot of a region.
 *
 * REGISTER needs a slot without a registration; a slot that the same call
 * invalidates is free only for the next call (EBUSY). INVALIDATE needs one
 * with a registration, also if a peer has invalidated it, and the key byte it
 * was registered with; all fields behind "key" must be 0.
 */
struct rnicd_fr_op {
	__u32 kind;		/* enum rnicd_fr_kind */
	__u32 region;
	__u32 slot;		/* below RNICD_FR_SLOTS */
	__u32 key;		/* low byte of the token, at most 255 */
	__u64 base;		/* address of the first byte for peers */
	__u64 length;		/* bytes, at least 1 */
	__u32 offset;		/* of the first byte in the first page: base modulo the page size */
	__u32 access;		/* RNICD_FR_LOCAL_WRITE and others */
	__u32 first_run;	/* index in the runs of the call */
	__u32 run_count;	/* their pages are exactly those the bytes lie in */
	__s32 result;		/* out: 0, or an errno below 0; see rnicd_fr_submit */
	__u32 slot_key;		/* out: its key from now on; 0: region dead or unknown */
};

/*
 * Executes operations in order and waits until they are complete. The first
 * that fails ends the chain; the call itself succeeds then, and the results
 * say:
 *   0           executed
 *   -EIO        the card refused it; its region is dead and must be destroyed
 *   -ECANCELED  not executed because an earlier one failed
 *   others      refused before it reached the card
 * A card does not say whether requests behind a failed one were executed. Their
 * slots get other kernel registrations, so that none is in force afterwards:
 * registrations count as cancelled, invalidations as executed, and the slots
 * have other keys (slot_key).
 * The call fails without effect with ENODEV when the card is gone and with
 * ENETDOWN when its own queue pair cannot be connected (port down).
 */
struct rnicd_fr_submit {
	__u64 ops;		/* address of struct rnicd_fr_op[op_count] */
	__u64 runs;		/* address of struct rnicd_fr_run[run_count] */
	__u32 op_count;		/* from 1 to RNICD_FR_OPS_MAX */
	__u32 run_count;	/* at most op_count times region_pages_max */
	__u32 done;		/* out: operations with result 0 */
	__u32 reserved;
};

#define RNICD_FR_MAGIC 0xb7
#define RNICD_FR_INFO _IOR(RNICD_FR_MAGIC, 0, struct rnicd_fr_info)
#define RNICD_FR_TAKE _IOWR(RNICD_FR_MAGIC, 1, struct rnicd_fr_take)
#define RNICD_FR_MAP _IOWR(RNICD_FR_MAGIC, 2, struct rnicd_fr_map)
#define RNICD_FR_UNMAP _IOW(RNICD_FR_MAGIC, 3, struct rnicd_fr_unmap)
#define RNICD_FR_CREATE_REGION _IOWR(RNICD_FR_MAGIC, 4, struct rnicd_fr_create_region)
#define RNICD_FR_DESTROY_REGION _IOW(RNICD_FR_MAGIC, 5, struct rnicd_fr_destroy_region)
#define RNICD_FR_SUBMIT _IOWR(RNICD_FR_MAGIC, 6, struct rnicd_fr_submit)
