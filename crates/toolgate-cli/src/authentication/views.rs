//! Authenticators of the views: each view is a protected resource of its own.

use super::Authenticator;
use crate::config::ViewSettings;
use std::{collections::HashMap, sync::Arc};
use toolgate::auth::resource::ResourceServer;

/// Authenticator of the gateway, and those of its views, which accept tokens for the view as well.
#[derive(Clone)]
pub(crate) struct Authenticators {
    pub(crate) gateway: Arc<Authenticator>,
    views: HashMap<String, Arc<Authenticator>>,
}

impl Authenticators {
    /// Creates the authenticators of the views besides that of the gateway.
    pub(crate) fn new(gateway: Authenticator, views: &[ViewSettings]) -> Authenticators {
        let view = |view: &ViewSettings| {
            let resource = gateway.resource.as_ref();
            let part = resource.map(|whole| view_resource(whole, &view.name));
            let authenticator = Authenticator {
                resource: part,
                view: Some(view.name.clone()),
                ..gateway.clone()
            };
            (view.name.clone(), Arc::new(authenticator))
        };
        Authenticators {
            views: views.iter().map(view).collect(),
            gateway: Arc::new(gateway),
        }
    }

    /// Returns the authenticator for the endpoint of a view. That of an unknown view is the gateway's, so that only an
    /// authenticated caller learns that there is no such view.
    pub(crate) fn of_view(&self, view: Option<&str>) -> &Arc<Authenticator> {
        let found = view.and_then(|view| self.views.get(view));
        found.unwrap_or(&self.gateway)
    }

    /// Returns the authenticator whose protected resource metadata has this path.
    pub(crate) fn of_metadata_path(&self, path: &str) -> Option<&Arc<Authenticator>> {
        let mut all = std::iter::once(&self.gateway).chain(self.views.values());
        all.find(|one| {
            let resource = one.resource.as_ref();
            resource.is_some_and(|resource| resource.is_metadata_path(path))
        })
    }
}

/// Returns the resource server of a view, whose URL is below that of the gateway.
fn view_resource(gateway: &Arc<ResourceServer>, view: &str) -> Arc<ResourceServer> {
    let path = format!("{}/{view}", gateway.resource().path().trim_end_matches('/'));
    match gateway.resource().with_path(&path) {
        Ok(url) => Arc::new(gateway.part(url)),
        // The name of a view is valid in any path, so this is unreachable.
        Err(_) => gateway.clone(),
    }
}
