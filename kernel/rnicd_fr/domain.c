// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Domain files: their requests and their end.
 */
#include <linux/compat.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "internal.h"

/*
 * The queue pair goes first, so that nothing is in flight; then registrations,
 * so that no key reaches a page; then pages; the uverbs file last, because it
 * frees the domain. Under the device's lock.
 */
void fr_domain_teardown(struct fr_domain *domain)
{
	mutex_lock(&domain->lock);
	if (!domain->gone) {
		domain->gone = true;
		fr_queue_close(&domain->queue);
		fr_destroy_all_regions(domain);
		if (domain->dma_mr) {
			domain->pd->local_dma_lkey = 0;
			domain->pd->device->ops.dereg_mr(domain->dma_mr, NULL);
			domain->dma_mr = NULL;
		}
		fr_unmap_all(domain);
		domain->pd = NULL;
		if (domain->uverbs)
			fput(domain->uverbs);
		domain->uverbs = NULL;
	}
	mutex_unlock(&domain->lock);
}

/* A domain that nobody else can reach; it may be incomplete. */
void fr_domain_free(struct fr_domain *domain)
{
	struct fr_device *device = domain->device;

	if (device) {
		mutex_lock(&device->lock);
		fr_domain_teardown(domain);
		list_del(&domain->entry);
		mutex_unlock(&device->lock);
		fr_device_put(device);
	}
	atomic_long_dec(&domain->user->domains);
	fr_user_put(domain->user);
	kvfree(domain->sg);
	kvfree(domain);
}

static int fr_domain_release(struct inode *inode, struct file *file)
{
	fr_domain_free(file->private_data);
	return 0;
}

static int fr_ioctl_create_region(struct fr_domain *domain,
				  struct rnicd_fr_create_region __user *to)
{
	struct rnicd_fr_create_region arg;
	int ret;

	if (copy_from_user(&arg, to, sizeof(arg)))
		return -EFAULT;
	ret = fr_create_region(domain, &arg);
	if (ret)
		return ret;
	if (copy_to_user(to, &arg, sizeof(arg))) {
		fr_destroy_region(domain, arg.region);
		return -EFAULT;
	}
	return 0;
}

static int fr_ioctl_destroy_region(struct fr_domain *domain, const void __user *from)
{
	struct rnicd_fr_destroy_region arg;

	if (copy_from_user(&arg, from, sizeof(arg)))
		return -EFAULT;
	if (arg.reserved)
		return -EINVAL;
	return fr_destroy_region(domain, arg.region);
}

static int fr_ioctl_unmap(struct fr_domain *domain, const void __user *from)
{
	struct rnicd_fr_unmap arg;

	if (copy_from_user(&arg, from, sizeof(arg)))
		return -EFAULT;
	return fr_unmap(domain, &arg);
}

static long fr_domain_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	struct fr_domain *domain = file->private_data;
	void __user *user = (void __user *)arg;

	if (!fr_called_by_owner(domain->user))
		return -EPERM;
	switch (command) {
	case RNICD_FR_MAP:
		return fr_map(domain, user);
	case RNICD_FR_UNMAP:
		return fr_ioctl_unmap(domain, user);
	case RNICD_FR_CREATE_REGION:
		return fr_ioctl_create_region(domain, user);
	case RNICD_FR_DESTROY_REGION:
		return fr_ioctl_destroy_region(domain, user);
	case RNICD_FR_SUBMIT:
		return fr_submit(domain, user);
	default:
		return -ENOTTY;
	}
}

const struct file_operations fr_domain_fops = {
	.owner = THIS_MODULE,
	.release = fr_domain_release,
	.unlocked_ioctl = fr_domain_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};
