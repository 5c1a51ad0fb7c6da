// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RNICD_FR_TAKE: a domain file for a protection domain of the caller.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/restrack.h>

#include "internal.h"

/*
 * No other file has this uverbs file as its private data, so the comparison
 * proves what kind of file it is as well. The caller has the entry, so neither
 * domain nor uobject are freed meanwhile.
 */
static bool fr_owns(const struct ib_pd *pd, const struct file *uverbs, u32 handle)
{
	const struct ib_uobject *uobject = pd->uobject;

	return !rdma_is_kernel_res(&pd->res) && uobject && uobject->object == pd &&
	       uobject->ufile == uverbs->private_data && (u32)uobject->id == handle &&
	       pd->res.task && same_thread_group(pd->res.task, current);
}

/* Two owners would disagree about the DMA key of the domain. */
static bool fr_is_taken(const struct fr_device *device, const struct ib_pd *pd)
{
	struct fr_domain *domain;

	list_for_each_entry(domain, &device->domains, entry) {
		if (domain->pd == pd)
			return true;
	}
	return false;
}

/*
 * mlx5 fetches a page list above 64 bytes by the domain's DMA key, and a domain
 * of user space has none. The key reaches all memory of the machine, and every
 * queue pair of the domain can use it, so root must have asked for it.
 */
static int fr_give_dma_key(struct fr_domain *domain)
{
	struct ib_pd *pd = domain->pd;
	struct ib_mr *mr;

	if (!fr_dma_key() || pd->local_dma_lkey)
		return 0;
	if (!pd->device->ops.get_dma_mr || !pd->device->ops.dereg_mr)
		return -EOPNOTSUPP;
	mr = pd->device->ops.get_dma_mr(pd, IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	mr->device = pd->device;
	mr->pd = pd;
	mr->type = IB_MR_TYPE_DMA;
	mr->uobject = NULL;
	mr->need_inval = false;
	domain->dma_mr = mr;
	pd->local_dma_lkey = mr->lkey;
	return 0;
}

/* Under the device's lock. On failure the caller tears the domain down. */
static int fr_make(struct fr_domain *domain, struct ib_pd *pd)
{
	int ret;

	if (fr_is_taken(domain->device, pd))
		return -EBUSY;
	domain->pd = pd;
	ret = fr_give_dma_key(domain);
	if (ret)
		return ret;
	return fr_queue_open(domain);
}

/*
 * The count of uverbs keeps the domain from being freed until the queue pair
 * counts in it; -1 is somebody who makes or frees it.
 */
static int fr_make_locked(struct fr_domain *domain, struct ib_pd *pd)
{
	struct ib_uobject *uobject = pd->uobject;
	int ret;

	if (atomic_fetch_add_unless(&uobject->usecnt, 1, -1) == -1)
		return -EBUSY;
	ret = fr_make(domain, pd);
	if (ret)
		fr_domain_teardown(domain);
	else
		list_add(&domain->entry, &domain->device->domains);
	atomic_dec(&uobject->usecnt);
	return ret;
}

static int fr_find_and_make(struct fr_domain *domain, const struct rnicd_fr_take *arg)
{
	struct fr_device *device = domain->device;
	struct rdma_restrack_entry *res;
	struct ib_pd *pd;
	int ret = -ENODEV;

	mutex_lock(&device->lock);
	if (device->removed)
		goto unlock;
	res = rdma_restrack_get_byid(device->ibdev, RDMA_RESTRACK_PD, arg->pd_id);
	if (IS_ERR(res)) {
		ret = -ENOENT;
		goto unlock;
	}
	pd = container_of(res, struct ib_pd, res);
	if (fr_owns(pd, domain->uverbs, arg->pd_handle))
		ret = fr_make_locked(domain, pd);
	else
		ret = -ENOENT;
	rdma_restrack_put(res);
unlock:
	mutex_unlock(&device->lock);
	return ret;
}

static int fr_check_card(const struct fr_device *device, u32 port)
{
	struct ib_device *ibdev = device->ibdev;

	if (!rdma_is_port_valid(ibdev, port))
		return -EINVAL;
	if (!(ibdev->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS) ||
	    !ibdev->attrs.max_fast_reg_page_list_len || rdma_protocol_iwarp(ibdev, port))
		return -EOPNOTSUPP;
	return 0;
}

/* mlx5 without a DMA key takes what fits into the work request itself. */
#define FR_INLINE_PAGES 8U

static u32 fr_region_pages_max(const struct ib_device *ibdev)
{
	u32 pages = min_t(u32, ibdev->attrs.max_fast_reg_page_list_len, RNICD_FR_REGION_PAGES_MAX);

	if (ibdev->ops.driver_id == RDMA_DRIVER_MLX5 && !fr_dma_key())
		pages = min(pages, FR_INLINE_PAGES);
	return pages;
}

/* The card may be removed at any time but under this lock. */
static int fr_read_card(struct fr_domain *domain, u32 port)
{
	struct fr_device *device = domain->device;
	int ret = -ENODEV;

	mutex_lock(&device->lock);
	if (!device->removed) {
		ret = fr_check_card(device, port);
		domain->region_pages_max = fr_region_pages_max(device->ibdev);
	}
	mutex_unlock(&device->lock);
	return ret;
}

static struct fr_domain *fr_domain_new(struct fr_user *user)
{
	struct fr_domain *domain = kvzalloc(sizeof(*domain), GFP_KERNEL_ACCOUNT);

	if (!domain)
		return NULL;
	kref_get(&user->ref);
	domain->user = user;
	mutex_init(&domain->lock);
	INIT_LIST_HEAD(&domain->entry);
	xa_init_flags(&domain->mappings, XA_FLAGS_ALLOC1);
	xa_init_flags(&domain->regions, XA_FLAGS_ALLOC1);
	return domain;
}

static int fr_fill(struct fr_domain *domain, const struct rnicd_fr_take *arg)
{
	int ret;

	domain->device = fr_device_get(arg->device_index);
	if (!domain->device)
		return -ENODEV;
	domain->uverbs = fget(arg->uverbs_fd);
	if (!domain->uverbs)
		return -EBADF;
	ret = fr_read_card(domain, arg->port);
	if (ret)
		return ret;
	domain->sg = kvcalloc(domain->region_pages_max, sizeof(*domain->sg), GFP_KERNEL_ACCOUNT);
	if (!domain->sg)
		return -ENOMEM;
	sg_init_table(domain->sg, domain->region_pages_max);
	domain->queue.port = arg->port;
	domain->queue.gid_index = arg->gid_index;
	return fr_find_and_make(domain, arg);
}

/* Gives the caller a descriptor. Once there is a file, it owns the domain. */
static int fr_publish(struct fr_domain *domain, struct rnicd_fr_take *arg,
		      struct rnicd_fr_take __user *to)
{
	struct file *file;
	int fd = get_unused_fd_flags(O_CLOEXEC);

	if (fd < 0) {
		fr_domain_free(domain);
		return fd;
	}
	file = anon_inode_getfile("[rnicd_fr]", &fr_domain_fops, domain, O_RDWR);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		fr_domain_free(domain);
		return PTR_ERR(file);
	}
	arg->domain_fd = fd;
	arg->region_pages_max = domain->region_pages_max;
	if (copy_to_user(to, arg, sizeof(*arg))) {
		put_unused_fd(fd);
		fput(file);
		return -EFAULT;
	}
	fd_install(fd, file);
	return 0;
}

int fr_take(struct fr_user *user, struct rnicd_fr_take __user *arg)
{
	struct fr_domain *domain;
	struct rnicd_fr_take take;
	int ret;

	if (copy_from_user(&take, arg, sizeof(take)))
		return -EFAULT;
	ret = fr_charge(&user->domains, 1, fr_domains_max());
	if (ret)
		return ret;
	domain = fr_domain_new(user);
	if (!domain) {
		atomic_long_dec(&user->domains);
		return -ENOMEM;
	}
	ret = fr_fill(domain, &take);
	if (ret) {
		fr_domain_free(domain);
		return ret;
	}
	return fr_publish(domain, &take, arg);
}
