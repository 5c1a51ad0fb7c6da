/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Locks, in this order: fr_devices_lock, fr_device.lock, fr_domain.lock.
 * No user memory is touched under any of them: a process could stall them.
 */
#pragma once

#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/scatterlist.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "rnicd_fr.h"

/* A control file. Its domains hold it, so it outlives them. */
struct fr_user {
	struct kref ref;
	struct pid *owner;
	atomic_long_t domains;
	atomic_long_t regions;
	atomic_long_t pages;
};

/* A card. Its domains hold it; ibdev is valid under the lock until removed. */
struct fr_device {
	struct kref ref;
	struct list_head entry;
	struct ib_device *ibdev;
	struct mutex lock; /* protects domains, removed */
	struct list_head domains;
	bool removed;
};

/* Pinned pages, mapped for the card. */
struct fr_mapping {
	u32 uses; /* registrations that are or may be in force */
	u32 count;
	bool stuck; /* a card kept a registration of its pages */
	struct mm_struct *mm;
	struct page **pages;
	u64 *dma;
};

enum fr_slot_state {
	FR_FREE,
	FR_LIVE,
	FR_DYING, /* a LOCAL_INV of the running call */
};

/*
 * ib_map_mr_sg() writes the page list into the registration at once, and a
 * card reads it later. So a slot is mapped only while it is free.
 */
struct fr_slot {
	struct ib_mr *mr; /* NULL once the region is broken */
	enum fr_slot_state state;
	u32 hold_count;
	struct fr_mapping **holds;
};

struct fr_region {
	u32 id;
	u32 pages;
	struct fr_slot slots[RNICD_FR_SLOTS];
};

/* A work request of the running call. */
struct fr_work {
	struct ib_cqe cqe;
	struct ib_reg_wr wr;
	struct fr_domain *domain;
	struct fr_region *region;
	struct fr_slot *slot;
	bool reported;
	enum ib_wc_status status;
};

/* A queue pair connected to itself, for REG_MR and LOCAL_INV. */
struct fr_queue {
	struct ib_cq *cq;
	struct ib_qp *qp;
	u32 port;
	u32 gid_index;
	bool connected;
	struct fr_work *last;
	struct completion complete;
};

/* A domain file. */
struct fr_domain {
	struct fr_user *user;
	struct fr_device *device;
	struct list_head entry;
	struct mutex lock; /* protects all below */
	bool gone; /* nothing of the card is left */
	struct file *uverbs;
	struct ib_pd *pd;
	struct ib_mr *dma_mr; /* NULL if the module gave the domain none */
	struct fr_queue queue;
	struct xarray mappings;
	struct xarray regions;
	u32 region_pages_max;
	struct scatterlist *sg; /* region_pages_max entries */
	struct fr_work work[RNICD_FR_OPS_MAX];
};

/* main.c */
void fr_user_put(struct fr_user *user);
int fr_charge(atomic_long_t *used, long amount, unsigned long limit);
struct fr_device *fr_device_get(u32 index);
void fr_device_put(struct fr_device *device);
bool fr_called_by_owner(const struct fr_user *user);
unsigned long fr_domains_max(void);
unsigned long fr_regions_max(void);
unsigned long fr_pages_max(void);
bool fr_dma_key(void);

/* take.c */
int fr_take(struct fr_user *user, struct rnicd_fr_take __user *arg);

/* domain.c */
extern const struct file_operations fr_domain_fops;
void fr_domain_teardown(struct fr_domain *domain);
void fr_domain_free(struct fr_domain *domain);

/* mapping.c */
int fr_map(struct fr_domain *domain, struct rnicd_fr_map __user *arg);
int fr_unmap(struct fr_domain *domain, const struct rnicd_fr_unmap *arg);
void fr_unmap_all(struct fr_domain *domain);

/* region.c */
int fr_create_region(struct fr_domain *domain,
		     struct rnicd_fr_create_region *arg);
int fr_destroy_region(struct fr_domain *domain, u32 id);
void fr_break_region(struct fr_region *region);
void fr_renew_slot(struct fr_domain *domain, struct fr_region *region, struct fr_slot *slot);
void fr_drop_holds(struct fr_slot *slot);
void fr_destroy_all_regions(struct fr_domain *domain);

/* queue.c */
int fr_queue_open(struct fr_domain *domain);
int fr_queue_ready(struct fr_queue *queue);
int fr_queue_execute(struct fr_domain *domain, u32 count);
void fr_queue_close(struct fr_queue *queue);

/* submit.c */
int fr_submit(struct fr_domain *domain, struct rnicd_fr_submit __user *arg);
