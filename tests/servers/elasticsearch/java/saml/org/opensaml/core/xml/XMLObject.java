package org.opensaml.core.xml;

/** OpenSAML is not published: its empty name is enough for the security plugin to load. SAML itself is dead. */
public interface XMLObject {}
